"""Fetches real chat templates into .models/templates, for the tests that read them.

They come from an npm package under the MIT licence (`@huggingface/ollama-utils`, templates of
published model files) and are not part of this repository. Needs npm; writes one .jinja a model.
"""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

PACKAGE = "@huggingface/ollama-utils@0.0.18"
MEMBER = "package/src/chat-template-automap.ts"
LITERAL = r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
ENTRY = re.compile(r'model:\s*"library/([^"]+)",\s*gguf:\s*' + LITERAL)
ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    target = ROOT / ".models" / "templates"
    target.mkdir(parents=True, exist_ok=True)
    found = ENTRY.findall(source())
    for model, literal in found:
        (target / f"{model.replace(':', '_')}.jinja").write_text(text(literal), encoding="utf-8")
    print(f"{len(found)} templates in {target}")
    return 0 if found else 1


def source() -> str:
    """The TypeScript file of the package that holds the templates as string literals."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", "--silent", "--pack-destination", folder, PACKAGE]
        subprocess.run(command, check=True, timeout=300, stdout=subprocess.DEVNULL)
        (archive,) = Path(folder).glob("*.tgz")
        with tarfile.open(fileobj=io.BytesIO(archive.read_bytes())) as files:
            member = files.extractfile(MEMBER)
            if member is None:
                msg = f"{PACKAGE} has no {MEMBER}"
                raise SystemExit(msg)
            return member.read().decode()


def text(literal: str) -> str:
    """A TypeScript string literal as text; the file uses JSON's escapes and the escaped quote."""
    body = literal[1:-1]
    if literal[0] == "'":
        body = body.replace("\\'", "'").replace('"', '\\"')
    return str(json.loads(f'"{body}"', strict=False))


if __name__ == "__main__":
    sys.exit(main())
