"""Schemathesis against our own /openapi.json: no 5xx, no status or content type it does not say.

Run: `python fuzz/fuzz_openapi.py [--examples 30]`. Schemathesis comes by `uvx`, for it brings much
that nothing else here needs. What its document allows is wider than what a turn takes, so most of
what is sent is refused; `fuzz_requests.py` is the search that goes deep.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.serving.server import serving

PACKAGE = "schemathesis==4.32.5"
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance"
LIMIT = 900.0  # seconds


async def search(examples: int) -> int:
    """Its exit code."""
    async with serving() as server:
        server.says({"text": "ok"})
        command = ["uvx", "--from", PACKAGE, "st", "run", f"{server.url}/openapi.json"]
        options = ["--checks", CHECKS, "--phases", "examples,fuzzing", "--workers", "1"]
        options += ["--max-examples", str(examples), "--suppress-health-check", "all"]
        with tempfile.TemporaryDirectory() as folder:  # it keeps a cache where it runs
            process = await asyncio.create_subprocess_exec(*command, *options, cwd=folder)
            async with asyncio.timeout(LIMIT):
                return await process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=30)
    return asyncio.run(search(parser.parse_args().examples))


if __name__ == "__main__":
    sys.exit(main())
