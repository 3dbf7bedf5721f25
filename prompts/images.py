"""Images of a turn: what tells its prompt from another of the same tokens.

A template writes the same placeholder for every image, so token ids alone would let prompts with
different images share a cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

from turns.blocks import Image, ToolResult
from turns.turn import Turn


def images(turn: Turn) -> Iterator[Image]:
    """All images that the model is to see, in their order."""
    for message in turn.messages:
        for block in message.blocks:
            for one in block.content if isinstance(block, ToolResult) else (block,):
                if isinstance(one, Image):
                    yield one


def salt(turn: Turn) -> str:
    """What cache keys are kept apart by: whose the turn is, and its images; "" for neither."""
    found = blake2b(digest_size=16)
    seen = False
    for image in images(turn):
        seen = True
        for part in (image.media_type, image.data, image.url):
            found.update(len(part).to_bytes(8, "big") + part.encode("utf-8", "surrogatepass"))
    return f"{turn.salt}images-{found.hexdigest()}" if seen else turn.salt
