from __future__ import annotations

import pypdfium2
import pytest

from tests.toolruns.sources.play import Watching, play, read_all
from toolruns.endings import Ending
from toolruns.sources.documents import Document, inside, paged
from toolruns.sources.source import InThread, SourceError


@pytest.fixture
def folder(tmp_path):
    home = tmp_path / "docs"
    (home / "deep").mkdir(parents=True)
    pdf = pypdfium2.PdfDocument.new()
    for _ in range(200):
        pdf.new_page(200, 200)
    pdf.save(home / "report.pdf")
    pdf.close()
    (home / "notes.txt").write_text("\f".join(f"page {n}" for n in range(1, 41)))
    (home / "deep" / "long.txt").write_text("line\n" * 150)
    (home / "broken.pdf").write_bytes(b"%PDF-1.7 nothing")
    (tmp_path / "secret.txt").write_text("secret")
    (home / "link.txt").symlink_to(tmp_path / "secret.txt")
    return home


async def test_a_pdf_is_read_page_by_page_and_stopped(folder):
    watched = Watching(InThread(Document(folder, "report.pdf")))
    live, view, ending = await play(watched, "count >= 10", mode="paginated")
    assert ending is Ending.PREDICATE_SATISFIED
    assert (view["pages"], watched.rows, watched.closed) == (16, 16, 1)
    assert live.run.cursor == "17"


async def test_all_pages_of_a_text(folder):
    found = await read_all(InThread(Document(folder, "notes.txt")))
    assert [(row["page"], row["text"]) for row in found] == [(n, f"page {n}") for n in range(1, 41)]


async def test_a_later_run_goes_on_at_a_page(folder):
    found = await read_all(InThread(Document(folder, "notes.txt", first=39)))
    assert [row["page"] for row in found] == [39, 40]


def test_text_without_form_feeds_is_cut_by_lines():
    assert [page.count("\n") for page in paged("line\n" * 150)] == [60, 60, 30]


@pytest.mark.parametrize(
    "name",
    [
        "../secret.txt",
        "/etc/passwd",
        "link.txt",
        "none.txt",
        "deep",
        "",
        ".",
        "deep/../../secret.txt",
        "x\0y",
        "report.pdf/x",
    ],
)
def test_nothing_outside_the_folder_is_a_document(folder, name):
    with pytest.raises(SourceError, match="no document"):
        inside(folder, name)


def test_files_below_the_folder_are_documents(folder):
    assert inside(folder, "deep/long.txt").name == "long.txt"


async def test_a_broken_pdf_says_so(folder):
    with pytest.raises(SourceError, match="no readable PDF"):
        await read_all(InThread(Document(folder, "broken.pdf")))
