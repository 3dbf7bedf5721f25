"""Documents, page by page: PDF files, and text files cut at form feeds or every so many lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pypdfium2

from toolruns.signals import Chunk, Exhausted
from toolruns.sources.records import Records
from toolruns.sources.source import Answer, SourceError

LINES_A_PAGE = 60
PAGES_A_READ = 16
MAX_BYTES = 256 * 1024 * 1024


class Document:
    """A Cursor: rows of `page`, `text`, `chars`. `name` is looked up below `folder`, only there."""

    def __init__(self, folder: Path, name: str, first: int = 1) -> None:
        self._folder = folder
        self._name = name
        self._page = max(1, first)
        self._pdf: Any = None
        self._texts: list[str] = []
        self._records = Records()
        self._stopped = False

    def open(self) -> None:
        path = inside(self._folder, self._name)
        if path.stat().st_size > MAX_BYTES:
            message = f"{self._name} is larger than {MAX_BYTES // 1024**2} MB"
            raise SourceError(message)
        if path.suffix.lower() == ".pdf":
            try:
                self._pdf = pypdfium2.PdfDocument(path)
            except pypdfium2.PdfiumError:
                message = f"{self._name} is no readable PDF"
                raise SourceError(message) from None
        else:
            self._texts = paged(path.read_text(errors="replace"))

    def read(self, rows: int) -> Answer:
        last = len(self._pdf) if self._pdf is not None else len(self._texts)
        pages = range(self._page, min(last, self._page + min(rows, PAGES_A_READ) - 1) + 1)
        if not pages:
            return Exhausted()
        records = []
        for page in pages:
            if self._stopped:
                break
            text = self._text(page)
            records.append({"page": page, "text": text, "chars": len(text)})
        self._page = pages[-1] + 1
        batch = self._records.batch(records)
        return Chunk(
            batch,
            batch.nbytes,
            last=self._page > last,
            pages=len(records),
            cursor=str(self._page),
        )

    def interrupt(self) -> None:
        self._stopped = True

    def close(self) -> None:
        if self._pdf is not None:
            self._pdf.close()

    def _text(self, page: int) -> str:
        if self._pdf is None:
            return self._texts[page - 1]
        leaf = self._pdf[page - 1]
        try:
            return str(leaf.get_textpage().get_text_bounded())
        finally:
            leaf.close()


def inside(folder: Path, name: str) -> Path:
    """The file of that name below the folder. Raises SourceError for anything outside it, links
    included; a file that is not there answers the same.
    """
    try:
        path = (folder / name).resolve(strict=True)
        path.relative_to(folder.resolve(strict=True))
    except (OSError, ValueError):
        message = f"no document {name!r}"
        raise SourceError(message) from None
    if not path.is_file():
        message = f"no document {name!r}"
        raise SourceError(message)
    return path


def paged(text: str) -> list[str]:
    """Pages of a text: at form feeds if it has any, else every `LINES_A_PAGE` lines."""
    if "\f" in text:
        return [page for page in text.split("\f") if page]
    lines = text.splitlines(keepends=True)
    return ["".join(lines[at : at + LINES_A_PAGE]) for at in range(0, len(lines), LINES_A_PAGE)]
