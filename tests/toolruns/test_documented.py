"""The Python of docs/streaming-tools.md, run as it stands there."""

from __future__ import annotations

import ast
import io
import re
from contextlib import redirect_stdout
from inspect import isawaitable
from pathlib import Path

from toolruns.sources.generator import GeneratorSource
from toolruns.stream import stream_tool
from toolruns.tool import Tool

PAGE = Path(__file__).resolve().parents[2] / "docs" / "streaming-tools.md"
SNIPPETS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


async def subscribe(sensor):
    for value in range(100):
        yield f"{sensor} {value}"


async def run(snippet, **names):
    code = compile(snippet, str(PAGE), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    awaited = eval(code, names)  # noqa: S307 - our own page
    if isawaitable(awaited):
        await awaited
    return names


async def test_the_decorated_generator_is_a_tool():
    names = await run(SNIPPETS[0], subscribe=subscribe)
    made = names["readings"]
    assert isinstance(made, Tool)
    assert (made.name, made.contract.mode) == ("readings", "unbounded")
    assert made.description == "What a sensor reads."
    async with stream_tool(made.open({"sensor": "s1"}, ""), until="count >= 3") as stream:
        async for _ in stream:
            pass
    assert stream.result["predicate"]["satisfied_at_row"] == 3
    assert stream.result["head"][0] == {"sensor": "s1", "value": "s1 0"}


async def test_a_stream_is_read_without_a_gateway():
    async def rows():
        for n in range(100):
            yield {"n": n}

    out = io.StringIO()
    with redirect_stdout(out):
        await run(SNIPPETS[1], source=GeneratorSource(rows))
    assert out.getvalue() == "predicate_satisfied\n"
