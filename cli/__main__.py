"""`python -m cli`: the command without being installed."""

from __future__ import annotations

from cli.app import main

if __name__ == "__main__":
    main(prog_name="treadle")
