"""Drill-downs in a process of their own, one each; the next process is warmed up meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from pathlib import Path
from typing import Any, Literal

import msgspec

from toolruns.rows.drill import DrillLimits, Page
from toolruns.rows.worker import Answer, Request
from turns.errors import InvalidRequestError

_ROOT = Path(__file__).resolve().parents[2]
GRACE = 10.0  # the kernel bounds processor time more tightly; this is for a loaded machine
STARTUP = 60.0


class Sandbox:
    """Runs `drill.query` and `drill.page` where they can do no harm.

    `memory` is what one drill-down may take beside the bare process, in bytes: the rows themselves
    and the query's work. At most `at_once` run at a time.
    """

    def __init__(
        self,
        root: Path,
        limits: DrillLimits | None = None,
        *,
        memory: int = 1024**3,
        at_once: int = 2,
    ) -> None:
        self._root = root
        self._limits = limits or DrillLimits()
        self._memory = memory
        self._turns = asyncio.Semaphore(at_once)
        self._warm: asyncio.Task[asyncio.subprocess.Process] | None = None

    async def query(self, handle: str, sql: str) -> Page:
        """One SELECT over the handle's rows. Raises InvalidRequestError that says what is wrong."""
        if len(sql) > self._limits.sql_chars:
            message = f"sql is longer than {self._limits.sql_chars} characters"
            raise InvalidRequestError(message, param="sql")
        return await self._run(handle, "query", {"sql": sql})

    async def page(self, handle: str, **options: Any) -> Page:
        """A page of rows; options as in `drill.page`."""
        return await self._run(handle, "page", options)

    async def close(self) -> None:
        """End the process that waits."""
        if self._warm is not None:
            process = await self._warm
            self._warm = None
            await _end(process)

    async def _run(
        self, handle: str, kind: Literal["query", "page"], options: dict[str, Any]
    ) -> Page:
        request = Request(str(self._root), handle, kind, self._limits, self._memory, options)
        async with self._turns:
            process = await (self._warm or self._start())
            self._warm = asyncio.create_task(self._start())
            try:
                answer = await self._ask(process, request)
            finally:
                await _end(process)
        if answer.page is None:
            raise InvalidRequestError(answer.error, param=answer.param)
        return answer.page

    async def _ask(self, process: asyncio.subprocess.Process, request: Request) -> Answer:
        line = msgspec.json.encode(request) + b"\n"
        wait = self._limits.seconds + GRACE
        try:
            out, _ = await asyncio.wait_for(process.communicate(line), wait)
        except TimeoutError:
            return Answer(
                error=f"stopped after {wait:g} s; aggregate less or filter more", param=request.kind
            )
        if not out:
            return Answer(
                error="the query needed more memory or time than it may have", param=request.kind
            )
        return msgspec.json.decode(out, type=Answer)

    async def _start(self) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "toolruns.rows.worker",
            cwd=_ROOT,
            env={
                "PATH": os.environ.get("PATH", ""),
                "PYTHONPATH": str(_ROOT),
                "HOME": "/nonexistent",
                "ARROW_DEFAULT_MEMORY_POOL": "system",
                "OPENBLAS_NUM_THREADS": "1",
            },
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=1024**2,
        )
        if process.stdout is not None:
            await asyncio.wait_for(process.stdout.readline(), STARTUP)
        return process


async def _end(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    await process.wait()
