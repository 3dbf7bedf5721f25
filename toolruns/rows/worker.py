"""The process in which one drill-down runs: `python -m toolruns.rows.worker`.

It says that it is ready, waits for one request line, limits itself, answers with one line and ends.
DuckDB's own limits do not bound every function (`repeat('x', 2000000000)` takes 4 GB and cannot be
interrupted), so the kernel's do: memory, processor time, no file that could grow.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from toolruns.rows.drill import DrillLimits, Page, page, query
from toolruns.rows.store import RowStore
from turns.errors import TreadleError

READY = b"ready\n"
DATA = 5
"""The field of statm that RLIMIT_DATA bounds: pages of data. Mere reservations are not in it."""


class Request(Struct):
    """What to look up, in the rows of `handle` under `root`. `memory` is in bytes."""

    root: str
    handle: str
    kind: Literal["query", "page"]
    limits: DrillLimits
    memory: int
    options: dict[str, Any] = field(default_factory=dict)


class Answer(Struct):
    """A page, or an error that is safe to show."""

    page: Page | None = None
    error: str = ""
    param: str | None = None


def main() -> None:
    _say(READY)
    request = msgspec.json.decode(sys.stdin.buffer.readline(), type=Request)
    _limit(request)
    try:
        answer = Answer(_run(request))
    except TreadleError as error:
        answer = Answer(error=error.message, param=error.param)
    except MemoryError:
        answer = Answer(error="the query needed more memory than it may have", param="sql")
    _say(msgspec.json.encode(answer) + b"\n")


def _say(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


def _run(request: Request) -> Page:
    table = RowStore(Path(request.root)).table(request.handle)
    if request.kind == "query":
        return query(table, request.options["sql"], request.limits)
    return page(table, limits=request.limits, **request.options)


def _limit(request: Request) -> None:
    used = int(Path("/proc/self/statm").read_text().split()[DATA]) * resource.getpagesize()
    seconds = int(request.limits.seconds) + 2
    for what, most in (
        (resource.RLIMIT_DATA, used + request.memory),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(what, (most, most))


if __name__ == "__main__":
    main()
