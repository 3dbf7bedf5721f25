"""The prefix doctor from a shell: why a turn did not begin as the one before it.

    python -m scripts.doctor TURN_B                # against the turn before it in its session
    python -m scripts.doctor TURN_A TURN_B         # against a turn that is named

Turns are named by the ids of their responses. The key of the client that asked them is read from
TREADLE_API_KEY. Says 1 where the prefix broke.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request
from typing import Any


def told(report: dict[str, Any]) -> str:
    """The report for a person."""
    found = report["break"]
    if found is None:
        return f"{report['turn']} begins with all the tokens of {report['before']}."
    return (
        f"{report['turn']} leaves {report['before']} at token {found['token']}: {found['cause']} "
        f"in {found['where']}, {found['lost']} cached tokens lost\n"
        f"  before: {found['before']!r}\n   after: {found['after']!r}"
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="doctor", description=__doc__)
    parser.add_argument("turns", nargs="+", metavar="TURN")
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    given = parser.parse_args(arguments)
    *before, turn = given.turns
    query = urllib.parse.urlencode({"before": before[-1]} if before else {})
    where = f"{given.url}/v1/treadle/turns/{urllib.parse.quote(turn)}/prefix?{query}"
    key = os.environ.get("TREADLE_API_KEY", "")
    request = urllib.request.Request(where, headers={"authorization": f"Bearer {key}"})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            report = json.load(answer)
    except urllib.error.HTTPError as error:
        sys.stderr.write(f"{error.code}: {error.read().decode(errors='replace')}\n")
        return 2
    sys.stdout.write(told(report) + "\n")
    return int(report["break"] is not None)


if __name__ == "__main__":
    raise SystemExit(main())
