"""What a stranger does with a fresh clone, stage by stage and timed; ten minutes they may take.

Usage: `python3 scripts/strangers_run.py [--from REPOSITORY]`. Needs git, Claude Code (on the PATH,
or where the tests of harnesses keep it) and, for the last look, Chromium. The home is an empty
folder, the environment has nothing of this shell's but the PATH and what pip is told.

The stages: clone; the README's first command (`./run`: a real small model on the CPU); the request
that it prints, pasted; `./run scripted`, at which the README has harnesses pointed; what `treadle
harness claude --print` prints, pasted, with a question for which Claude Code runs a tool of its
own; what the console says of that, and shows in a browser.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
HARNESSES = Path(os.environ.get("TREADLE_HARNESS_TOOLS", Path.home() / ".cache" / "harness-tools"))
URL = "http://127.0.0.1:8000"
LIMIT_S = 600
WITHIN_S = 900
"""How long one stage is waited for: a run that is too slow is told in figures, not cut."""

MARK = "TREADLE_STRANGER"
SAYS = "Run one command in the shell and tell me what it printed."
LOOK = """
import sys
from playwright.sync_api import expect, sync_playwright
program, url, session, picture = sys.argv[1:]
with sync_playwright() as playwright:
    how = ["--headless", "--no-sandbox"]
    browser = playwright.chromium.launch(executable_path=program, args=how)
    page = browser.new_page(viewport={"width": 1280, "height": 860})
    wrong = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(f"{url}/console/")
    expect(page.locator("h1").first).to_be_visible(timeout=20_000)
    expect(page.get_by_text("Claude Code").first).to_be_visible(timeout=20_000)
    page.goto(f"{url}/console/#/sessions/{session}")
    expect(page.get_by_text("Bash").first).to_be_visible(timeout=20_000)
    page.screenshot(path=picture)
    browser.close()
    assert not wrong, wrong
"""


class Stranger:
    """Who does it all in `folder`, and knows nothing but what is printed."""

    def __init__(self, source: str, folder: Path) -> None:
        self.source = source
        self.folder = folder
        self.clone = folder / "treadle"
        self.stages: list[tuple[str, float]] = []
        (folder / "home").mkdir()
        kept = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        claude = HARNESSES / "claude" / "node_modules" / ".bin"
        self.env = kept | {
            "HOME": str(folder / "home"),
            "PATH": f"{claude}:{os.environ['PATH']}" if claude.is_dir() else os.environ["PATH"],
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "RAY_TMPDIR": str(folder),  # beside another cluster of this machine
            MARK: str(folder),
        }

    def stage(self, what: str, work: Callable[[], str]) -> str:
        """Do it, note how long it took, and show the end of what was seen."""
        print(f"\n== {what}", flush=True)
        began = time.monotonic()
        said = work()
        self.stages.append((what, time.monotonic() - began))
        print(said[-1500:].strip(), flush=True)
        print(f"== {self.stages[-1][1]:.1f} s", flush=True)
        return said

    def shell(self, lines: str, folder: Path | None = None) -> str:
        """What lines print that are pasted into a shell. They must all succeed."""
        try:
            done = subprocess.run(
                ["/bin/bash", "-e"],
                input=lines,
                env=self.env,
                cwd=folder or self.clone,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=WITHIN_S,
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            sys.exit(f"{late.stdout!r}\nstranger: it did not end within {WITHIN_S} s")
        if done.returncode:
            sys.exit(f"{done.stdout}\nstranger: it ended with {done.returncode}")
        return done.stdout

    @contextlib.contextmanager
    def serving(self, *command: str) -> Iterator[str]:
        """A server in the foreground of another terminal, ended with Ctrl-C; gives what it said."""
        log = self.folder / "log"
        with (
            log.open("w") as out,
            subprocess.Popen(
                command,
                cwd=self.clone,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            ) as server,
        ):
            try:
                yield self.stage(" ".join(command), lambda: ready(server, log))
            finally:
                self.stage("Ctrl-C", lambda: self.interrupt(server))

    def interrupt(self, server: subprocess.Popen[bytes]) -> str:
        """What a terminal does; then nothing may be left."""
        os.killpg(server.pid, signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(60)
        until = time.monotonic() + 30
        while (left := self.left()) and time.monotonic() < until:
            time.sleep(0.5)
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if left:
            sys.exit(f"stranger: {len(left)} processes were left behind")
        return "nothing is left"

    def left(self) -> list[int]:
        """Processes of this run that are still there."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if f"{MARK}={self.folder}".encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
        return found

    def run(self) -> None:
        """All stages."""
        self.stage(
            "git clone", lambda: self.shell(f"git clone -q {self.source} treadle", self.folder)
        )
        with self.serving("./run") as said:
            pasted = next(line for line in said.splitlines() if line.startswith("  curl "))
            self.stage("the request that it printed", lambda: answered(self.shell(pasted)))
        with self.serving("./run", "scripted"):
            how = "./treadle harness claude --print"
            lines = self.stage(how, lambda: self.shell(how))
            asked = f'{lines.rstrip()} -p "{SAYS}" --allowedTools Bash'
            self.stage("the lines, pasted, and a question", lambda: tooled(self.shell(asked)))
            session = ""

            def told() -> str:
                nonlocal session
                session, line = shown()
                return line

            self.stage("the console's API", told)
            self.stage("the console in Chromium", lambda: self.look(session))

    def look(self, session: str) -> str:
        names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
        program = next(filter(None, map(shutil.which, names)), None)
        if program is None:
            return "left out: no Chromium here"
        picture = ROOT / ".run" / "strangers-run.png"
        picture.parent.mkdir(exist_ok=True)
        python = self.clone / ".venv" / "bin" / "python"
        asked = [program, URL, session, str(picture)]
        subprocess.run([python, "-c", LOOK, *asked], env=self.env, check=True, timeout=120)
        return f"it shows the session: {picture.relative_to(ROOT)}"


def ready(server: subprocess.Popen[bytes], log: Path) -> str:
    """What a server said, once it has said that it is ready."""
    until = time.monotonic() + WITHIN_S
    while time.monotonic() < until and server.poll() is None:
        said = log.read_text(errors="replace")
        if "treadle: ready" in said and "/console" in said:
            return said
        time.sleep(0.2)
    sys.exit(f"{log.read_text(errors='replace')[-4000:]}\nstranger: it never was ready")


def answered(said: str) -> str:
    if "message_stop" not in said or "text_delta" not in said:
        sys.exit(f"{said}\nstranger: that is no whole answer")
    return said


def tooled(said: str) -> str:
    if "The tool returned:" not in said:
        sys.exit(f"{said}\nstranger: no tool was used")
    return said


def asked(path: str) -> Any:
    with urllib.request.urlopen(URL + path, timeout=30) as answer:
        return json.load(answer)


def shown() -> tuple[str, str]:
    """The session as the console lists it: Claude Code's, with its call."""
    until = time.monotonic() + 30
    rows: list[dict[str, Any]] = []
    while time.monotonic() < until:
        rows = asked("/console/api/sessions")["sessions"]
        for row in rows:
            if "claude" in row.get("harness", "") and row.get("calls"):
                return row["session"], json.dumps(row)
        time.sleep(0.2)
    sys.exit(f"{rows}\nstranger: the console has no session of Claude Code with a call")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--from", dest="source", default=str(ROOT), help="what is cloned")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="stranger-", ignore_cleanup_errors=True) as folder:
        stranger = Stranger(given.source, Path(folder))
        stranger.run()
    total = sum(seconds for _, seconds in stranger.stages)
    print("\n| stage | seconds |\n|---|---|")
    for what, seconds in [*stranger.stages, ("all", total)]:
        print(f"| `{what}` | {seconds:.1f} |")
    print(f"\nstranger: {'within' if total < LIMIT_S else 'over'} {LIMIT_S} s", flush=True)
    return 0 if total < LIMIT_S else 1


if __name__ == "__main__":
    sys.exit(main())
