"""vLLM's KV events as they travel: msgpack batches `[ts, events, rank]` to our words.

Decoded here and not with vLLM's structs: up to 0.25 an event is an array that opens with its type,
from 0.26 on a map with `type`, and fields are added in every release. Only what we use is read;
an event of an unknown kind is passed over.
"""

from __future__ import annotations

from typing import Any

import msgspec

from actors.engines.engine import KvCleared, KvEvent, KvRemoved, KvStored
from router.blocks import image_key
from turns.errors import EngineError

ARRAYS = {
    "BlockStored": (
        "block_hashes",
        "parent_block_hash",
        "token_ids",
        "block_size",
        "lora_id",
        "medium",
        "lora_name",
        "extra_keys",
    ),
    "BlockRemoved": ("block_hashes", "medium"),
    "AllBlocksCleared": (),
}
"""The fields of the array form in their order; a release may end sooner or go on."""

LOW_64 = (1 << 64) - 1


def decode_batch(payload: bytes) -> list[KvEvent]:
    """Raises EngineError when `payload` is no batch of events."""
    try:
        batch = msgspec.msgpack.decode(payload)
        events = [decode_event(event) for event in batch[1]]
    except (msgspec.MsgspecError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise EngineError(f"vLLM's KV events have a form we do not know: {error!r}") from error
    return [event for event in events if event is not None]


def decode_event(event: Any) -> KvEvent | None:
    fields = event
    if isinstance(event, list):
        fields = dict(zip(("type", *ARRAYS.get(event[0], ())), event, strict=False))
    if not counts(fields):
        return None
    match fields["type"]:
        case "BlockStored":
            parent = fields["parent_block_hash"]
            return KvStored(
                block_hashes=[number(name) for name in fields["block_hashes"]],
                parent=None if parent is None else number(parent),
                token_ids=fields["token_ids"],
                block_size=fields["block_size"],
                **keys_of(fields.get("extra_keys"), lora_of(fields)),
            )
        case "BlockRemoved":
            return KvRemoved([number(name) for name in fields["block_hashes"]])
        case "AllBlocksCleared":
            return KvCleared()
        case _:
            return None


def counts(fields: dict[str, Any]) -> bool:
    """Whether the event is about blocks an engine can start from at once.

    Blocks on an offload tier are not; of a model with several KV groups (sliding windows beside
    full attention) the first group stands for all.
    """
    medium = fields.get("medium") or "GPU"  # vLLM's name for the engine's own memory, on CPUs too
    return medium == "GPU" and not fields.get("group_idx")


def number(name: int | bytes) -> int:
    """Hashes are ints by default, or bytes of which the low 64 bits are that int."""
    return name if isinstance(name, int) else int.from_bytes(name, "big") & LOW_64


def lora_of(fields: dict[str, Any]) -> str:
    """The adapter's name; old releases gave a number only."""
    name, number_of = fields.get("lora_name"), fields.get("lora_id")
    return name or ("" if number_of is None else str(number_of))


def keys_of(extra_keys: list[list[Any] | None] | None, lora: str) -> dict[str, Any]:
    """What blocks depend on besides tokens: LoRA adapter, cache salt, images.

    vLLM publishes, per block, the adapter's name, `(image, offset)` pairs and the salt, in this
    order and without saying which is which. Salt and adapter belong to the whole chain (the salt
    stands with a prompt's first block only), the rest to its block.
    """
    salt, extras = "", []
    for at, keys in enumerate(extra_keys or []):
        own = [key for key in keys or [] if key != lora]
        if not at and own and isinstance(own[-1], str):
            salt = own.pop()
        extras.append(image_key(key if isinstance(key, list | tuple) else (key,) for key in own))
    return {"salt": salt, "lora": lora, "extras": extras if any(extras) else None}
