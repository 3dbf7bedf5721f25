"""Block hashes: the name of a prompt's prefix, one per whole block of tokens.

The hash of a block covers all tokens before it: XXH3-64 over the block's little-endian u32 bytes,
seeded with the hash of its parent. A salt (tenant, LoRA) starts another chain, so prefixes that may
not share a cache never match; from the block on in which an image begins, its content is part of
the name. A partial last block has no hash. Computed from token ids
alone: an engine's own hashes change between versions and never get in.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

from xxhash import xxh3_64_intdigest

Span = tuple[str, int, int]
"""An image in a prompt: its name, where its tokens begin, how many there are."""

_WORD = 4
_SALT_SEED = 1
_LORA_SEED = 2


def root(salt: str = "", lora: str = "") -> int:
    """The parent of a chain's first block, under a cache salt and a LoRA adapter."""
    seed = xxh3_64_intdigest(lora.encode(), _LORA_SEED) if lora else _SALT_SEED
    return xxh3_64_intdigest(salt.encode(), seed) if salt or lora else 0


def follow(
    parent: int, ids: Sequence[int], block_size: int, extras: Sequence[str] | None = None
) -> list[int]:
    """Hashes of the whole blocks of `ids` that follow the block `parent`.

    `extras` has, per block, what it depends on besides tokens (an image's key), "" for nothing.
    Raises ValueError for a block size below 1 and OverflowError for an id outside u32.
    """
    if block_size < 1:
        raise ValueError(f"block size is {block_size}: it must be at least 1 token")
    tokens = ids if isinstance(ids, array) and ids.typecode == "I" else array("I", ids)
    raw = tokens.tobytes()  # slices of bytes beat slices of a memoryview here
    width = block_size * _WORD
    hashes: list[int] = []
    append, digest = hashes.append, xxh3_64_intdigest
    for start in range(0, len(raw) - width + 1, width):
        if extras is not None and (extra := extras[len(hashes)]):
            parent = digest(extra.encode(), parent)
        parent = digest(raw[start : start + width], parent)
        append(parent)
    return hashes


def chain(
    ids: Sequence[int],
    block_size: int,
    salt: str = "",
    *,
    lora: str = "",
    extras: Sequence[str] | None = None,
) -> list[int]:
    """Hashes of all whole blocks of a prompt, first to last."""
    return follow(root(salt, lora), ids, block_size, extras)


def image_key(places: Iterable[Sequence[object]]) -> str:
    """One text for the images of a block: of each its name, and how far from the block's start it
    begins.
    """
    return " ".join("@".join(map(str, place)) for place in places)


def extras_of(spans: Sequence[Span], blocks: int, block_size: int) -> list[str] | None:
    """Per block, the images that reach into it, as vLLM keys its blocks; None where there are none.

    `spans` are in the order of the prompt.
    """
    if not spans:
        return None
    within: list[list[tuple[str, int]]] = [[] for _ in range(blocks)]
    for name, start, length in spans:
        last = (start + length - 1) // block_size
        for block in range(start // block_size, min(last + 1, blocks)):
            within[block].append((name, start - block * block_size))
    return [image_key(places) for places in within]


def extend(hashes: Sequence[int], ids: Sequence[int], block_size: int, salt: str = "") -> list[int]:
    """`chain(ids)` where `hashes` are those of a known prefix of `ids`: only what is new is read.

    The caller answers for `hashes` belonging to `ids`; more of them than `ids` has blocks is a
    ValueError.
    """
    done = len(hashes) * block_size
    if done > len(ids):
        raise ValueError(f"{len(hashes)} blocks of {block_size} are more than {len(ids)} tokens")
    parent = hashes[-1] if hashes else root(salt)
    return [*hashes, *follow(parent, ids[done:], block_size)]
