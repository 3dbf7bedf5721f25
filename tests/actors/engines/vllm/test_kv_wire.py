from __future__ import annotations

from typing import Any

import msgspec
import pytest

from actors.engines.engine import KvCleared, KvEvent, KvRemoved, KvStored
from actors.engines.vllm.kv_wire import decode_batch
from turns.errors import EngineError

STORED = KvStored([11, 12], 10, [1, 2, 3, 4], 2)

CASES = [
    pytest.param(
        {
            "type": "BlockStored",
            "block_hashes": [11, 12],
            "parent_block_hash": 10,
            "token_ids": [1, 2, 3, 4],
            "block_size": 2,
            "lora_id": None,
            "medium": "GPU",
            "lora_name": None,
            "a_field_of_next_year": {"x": 1},
        },
        STORED,
        id="map-stored",
    ),
    pytest.param(
        ["BlockStored", [11, 12], 10, [1, 2, 3, 4], 2, None], STORED, id="array-stored-of-0.20"
    ),
    pytest.param(
        ["BlockStored", [11, 12], 10, [1, 2, 3, 4], 2, None, "GPU", None],
        STORED,
        id="array-stored-longer",
    ),
    pytest.param(
        {
            "type": "BlockStored",
            "block_hashes": [11, 12],
            "parent_block_hash": None,
            "token_ids": [1, 2, 3, 4],
            "block_size": 2,
            "extra_keys": [["tenant"], None],
        },
        KvStored([11, 12], None, [1, 2, 3, 4], 2, "tenant"),
        id="salted",
    ),
    pytest.param(
        {
            "type": "BlockStored",
            "block_hashes": [11, 12],
            "parent_block_hash": None,
            "token_ids": [1, 2, 3, 4],
            "block_size": 2,
            "lora_name": "sql",
            "extra_keys": [["sql", ["cat", 1], "tenant"], ["sql", ["cat", -1], ["dog", 0]]],
        },
        KvStored([11, 12], None, [1, 2, 3, 4], 2, "tenant", "sql", ["cat@1", "cat@-1 dog@0"]),
        id="lora-salt-and-images",
    ),
    pytest.param(
        [
            "BlockStored",
            [11, 12],
            None,
            [1, 2, 3, 4],
            2,
            7,
            "GPU",
            "sql",
            [["sql", "tenant"], None],
        ],
        KvStored([11, 12], None, [1, 2, 3, 4], 2, "tenant", "sql"),
        id="array-with-lora-and-salt",
    ),
    pytest.param(
        ["BlockStored", [11], None, [1, 2], 2, 7],
        KvStored([11], None, [1, 2], 2, lora="7"),
        id="array-with-the-number-of-a-lora",
    ),
    pytest.param(
        ["BlockStored", [11], None, [1, 2], 2, None, "CPU"], None, id="array-offload-tier"
    ),
    pytest.param(
        {"type": "BlockRemoved", "block_hashes": [11], "medium": "GPU"},
        KvRemoved([11]),
        id="map-removed",
    ),
    pytest.param(["BlockRemoved", [11]], KvRemoved([11]), id="array-removed"),
    pytest.param(
        {"type": "BlockRemoved", "block_hashes": [b"\xff" * 24 + b"\0" * 7 + b"\x0b"]},
        KvRemoved([11]),
        id="hash-as-bytes",
    ),
    pytest.param({"type": "AllBlocksCleared"}, KvCleared(), id="map-cleared"),
    pytest.param(["AllBlocksCleared"], KvCleared(), id="array-cleared"),
    pytest.param({"type": "BlockWarmed"}, None, id="unknown-kind"),
    pytest.param(
        {"type": "BlockRemoved", "block_hashes": [1], "medium": "CPU"}, None, id="offload-tier"
    ),
    pytest.param(
        {"type": "BlockRemoved", "block_hashes": [1], "group_idx": 1}, None, id="second-kv-group"
    ),
    pytest.param(
        {"type": "BlockRemoved", "block_hashes": [1], "group_idx": 0},
        KvRemoved([1]),
        id="first-kv-group",
    ),
]


@pytest.mark.parametrize(("wire", "event"), CASES)
def test_each_form_of_an_event(wire: Any, event: KvEvent | None) -> None:
    batch = msgspec.msgpack.encode([1.5, [wire], 0])
    assert decode_batch(batch) == ([] if event is None else [event])


def test_hashes_of_64_bits_stay_whole() -> None:
    batch = msgspec.msgpack.encode([1.5, [["BlockRemoved", [2**64 - 1]]]])
    assert decode_batch(batch) == [KvRemoved([2**64 - 1])]


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\xc1", id="no-msgpack"),
        pytest.param(msgspec.msgpack.encode({"ts": 1}), id="no-batch"),
        pytest.param(msgspec.msgpack.encode([1.0, [{"type": "BlockStored"}]]), id="no-fields"),
        pytest.param(msgspec.msgpack.encode([1.0, [[]]]), id="empty-event"),
        pytest.param(msgspec.msgpack.encode([1.0, [7]]), id="event-is-a-number"),
    ],
)
def test_what_is_no_batch_is_said(payload: bytes) -> None:
    with pytest.raises(EngineError, match="form we do not know"):
        decode_batch(payload)
