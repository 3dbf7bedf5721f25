"""The text layer of PDF files, read in a process of its own and remembered.

A client sends its file again with every turn, so a text is looked up by the digest of the file; one
that was read costs no more than that.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import sys
from collections import OrderedDict
from hashlib import blake2b
from pathlib import Path

import msgspec
from msgspec import Struct, field

PROCESS = Path(__file__).with_name("pdf_process.py")
AT_ONCE = 2
KEPT = 16 * 2**20
"""Characters of texts that are remembered."""

MEMORY = 2**30


class PdfError(Exception):
    """Why a file was not read, in a word that may stand in a response header."""


class PdfLimits(Struct, frozen=True):
    """What of a file is read: `size` in bytes, `pages`, `characters`, and `seconds` for it all."""

    size: int = 32 * 2**20
    pages: int = 100
    characters: int = 2_000_000
    seconds: float = 20.0


class PdfText(Struct, frozen=True):
    """A file's pages, as many as were read of the `total`."""

    pages: list[str] = field(default_factory=list)
    total: int = 0
    error: str = ""

    @property
    def size(self) -> int:
        return sum(map(len, self.pages))


_read = msgspec.json.Decoder(PdfText).decode


class PdfReader:
    """One per ingress."""

    def __init__(self, limits: PdfLimits) -> None:
        self._limits = limits
        self._free = asyncio.Semaphore(AT_ONCE)
        self._known: OrderedDict[bytes, PdfText] = OrderedDict()
        self._size = 0

    async def text(self, data: bytes) -> PdfText:
        """Raises PdfError."""
        if len(data) > self._limits.size:
            raise PdfError("too_large")
        key = blake2b(data, digest_size=16).digest()
        if (known := self._known.get(key)) is not None:
            self._known.move_to_end(key)
            return known
        async with self._free:
            found = self._known.get(key) or await self._run(data)
        self._keep(key, found)
        return found

    def _keep(self, key: bytes, text: PdfText) -> None:
        if key not in self._known:
            self._size += text.size
        self._known[key] = text
        while self._size > KEPT and len(self._known) > 1:
            self._size -= self._known.popitem(last=False)[1].size

    async def _run(self, data: bytes) -> PdfText:
        if importlib.util.find_spec("pypdfium2") is None:
            raise PdfError("pypdfium2_is_not_installed")
        limits = self._limits
        words = (limits.pages, limits.characters, int(limits.seconds) + 1, MEMORY)
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            str(PROCESS),
            *map(str, words),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(limits.seconds):
                said, _ = await process.communicate(data)
        except TimeoutError:
            raise PdfError("timeout") from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        return _answer(said)


def _answer(said: bytes) -> PdfText:
    """What the process said. Raises PdfError where it said nothing, as one that crashed does."""
    try:
        found = _read(said)
    except msgspec.DecodeError:
        raise PdfError("unreadable") from None
    if found.error:
        raise PdfError(found.error)
    return found
