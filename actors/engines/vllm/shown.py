"""Pictures as vLLM takes them: the prompt as it was counted, with the pixels to its placeholders.

vLLM's processor is given the pictures alone and makes of each the tokens that stand for it. They
must be those that the ingress counted; then they are placed where the prompt has them. So text is
never searched for placeholders, and what a model said is never taken for one.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

from vllm.inputs.engine import mm_input
from vllm.multimodal.media import MediaWithBytes

from actors.engines.vllm.pixels import decoded
from turns.errors import EngineError
from turns.frames import Job, Picture


class Undecoded(MediaWithBytes[Any]):  # type: ignore[misc] # untyped where vLLM is absent
    """A picture that is decoded when vLLM asks for it: not if its cache has what it made of it."""

    def __init__(self, picture: Picture) -> None:
        self.picture = picture
        self.original_bytes = picture.data
        self.io_config = None

    @cached_property
    def media(self) -> Any:
        return decoded(self.picture)


async def shown(renderer: Any, job: Job) -> Any:
    """VLLM's input for the job. Raises EngineError where its processor counts otherwise."""
    pictures = job.pictures
    asked = {
        "prompt_token_ids": [one.pad for one in pictures],
        "multi_modal_data": {"image": [Undecoded(one) for one in pictures]},
        "multi_modal_uuids": {"image": [one.digest for one in pictures]},
    }
    (made,) = await renderer.render_cmpl_async([asked])
    ids, places = made["prompt_token_ids"], made["mm_placeholders"]["image"]
    for one, place in zip(pictures, places, strict=True):
        own = ids[place.offset : place.offset + place.length]
        if own != job.prompt[one.at : one.at + one.length]:
            raise EngineError(
                f"an image of {one.width}x{one.height} pixels is {one.length} tokens in the prompt "
                f"and {place.length} to vLLM; does the engine's model folder differ from the "
                "ingress's, or do its options set mm_processor_kwargs?"
            )
    placed = [replace(place, offset=one.at) for one, place in zip(pictures, places, strict=True)]
    return mm_input(
        job.prompt,
        made["mm_kwargs"],
        made["mm_hashes"],
        {"image": placed},
        cache_salt=job.salt or None,
    )
