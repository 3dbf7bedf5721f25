"""A family and a tokenizer small enough to read: a token a character, markers are one token."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from actors.engines.scripted.reply import Said
from turns.blocks import Message, Reasoning, Text, ToolCall, ToolResult
from turns.frames import Frame, Job, ParseSpec
from turns.turn import Sampling, Tool, Turn

MARKERS = ("<end>", "<think>", "</think>", "<call>", "</call>")
END = 0
VOCAB = 1 << 17
PIECE = re.compile("|".join(map(re.escape, MARKERS)) + "|.", re.DOTALL)


def encode(text: str) -> list[int]:
    return [
        MARKERS.index(piece) if piece in MARKERS else ord(piece) + len(MARKERS)
        for piece in PIECE.findall(text)
    ]


def decode(ids: Sequence[int]) -> str:
    return "".join(MARKERS[one] if one < len(MARKERS) else chr(one - len(MARKERS)) for one in ids)


def write(spec: ParseSpec, blocks: Sequence[Said]) -> str:
    out, inside = [], spec.tail.endswith("<think>")
    for block in blocks:
        if isinstance(block, Reasoning):
            out.append(block.text if inside else "<think>" + block.text)
            inside = True
            continue
        if inside:
            out.append("</think>")
            inside = False
        if isinstance(block, Text):
            out.append(block.text)
        else:
            out.append(f'<call>{{"name":"{block.name}","arguments":{block.arguments}}}</call>')
    return "".join(out) + ("</think>" if inside else "")


def ask(*messages: Message | str, tools: Sequence[Tool] = (), **fields: Any) -> Turn:
    """A turn; a bare string is what the user says."""
    spoken = tuple(
        Message("user", (Text(one),)) if isinstance(one, str) else one for one in messages
    )
    return Turn("t", "messages", "toy", spoken, tuple(tools), **fields)


def called(name: str = "bash", arguments: str = "{}") -> Message:
    return Message("assistant", (ToolCall("c1", name, arguments),))


def answered(text: str) -> Message:
    return Message("tool", (ToolResult("c1", (Text(text),)),))


def tool(name: str, _required: Sequence[str] = (), /, **properties: Any) -> Tool:
    schema = {"type": "object", "properties": properties, "required": list(_required)}
    return Tool(name, parameters=schema)


def job(
    turn: Turn | None = None, name: str = "t", prompt: Sequence[int] = (9, 9, 9), **fields: Any
) -> Job:
    fields.setdefault("sampling", Sampling(max_tokens=fields.pop("max_tokens", None)))
    tail = fields.pop("tail", "")
    return Job(
        turn=name,
        prompt=list(prompt),
        spec=ParseSpec("toy", tail),
        stop_ids=(END,),
        conversation=turn,
        **fields,
    )


def said(frames: Sequence[Frame], turn: str = "t") -> list[int]:
    return [token for frame in frames if frame.turn == turn for token in frame.ids]


def ends(frames: Sequence[Frame], turn: str = "t") -> list[str]:
    return [frame.finish for frame in frames if frame.turn == turn and frame.finish is not None]


def calls_in(text: str) -> list[dict[str, Any]]:
    return [msgspec.json.decode(one) for one in re.findall(r"<call>(.*?)</call>", text, re.DOTALL)]
