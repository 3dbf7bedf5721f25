"""The Python of docs/harnesses.md, run by the official SDKs against the server."""

from __future__ import annotations

import asyncio
import contextlib
import io
import re
from pathlib import Path

from tests.serving.server import serving, settings

PAGE = Path(__file__).resolve().parents[2] / "docs" / "harnesses.md"


async def test_the_sdks_say_hello_on_all_three_apis() -> None:
    (body,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    async with serving(settings()) as server:
        code = compile(body.replace("http://127.0.0.1:8000", server.url), str(PAGE), "exec")
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            await asyncio.to_thread(exec, code, {})
    said = out.getvalue().splitlines()
    assert len(said) >= 3
    assert all(line.strip() for line in (said[0], said[-1]))
