"""What is read of a PDF, what is not, and that no file can hold anything up."""

from __future__ import annotations

import pytest

from actors.attachments.pdf import PdfError, PdfLimits, PdfReader
from tests.actors.attachments.pages import pdf


async def test_its_pages_are_read_once() -> None:
    reader = PdfReader(PdfLimits())
    found = await reader.text(pdf("First page", "Second page"))
    assert [page.strip() for page in found.pages] == ["First page", "Second page"]
    assert found.total == 2
    assert await reader.text(pdf("First page", "Second page")) is found


async def test_what_is_over_the_limits_is_left_and_told() -> None:
    reader = PdfReader(PdfLimits(pages=2))
    found = await reader.text(pdf("a", "b", "c"))
    assert (len(found.pages), found.total) == (2, 3)
    short = await PdfReader(PdfLimits(characters=4)).text(pdf("abcdefgh", "b"))
    assert (short.pages, short.total) == (["abcd"], 2)


@pytest.mark.parametrize(
    ("data", "limits", "why"),
    [
        pytest.param(b"%PDF-1.7 nothing", PdfLimits(), "unreadable", id="broken"),
        pytest.param(pdf("a"), PdfLimits(size=10), "too_large", id="large"),
        pytest.param(pdf("a"), PdfLimits(seconds=0.001), "timeout", id="slow"),
    ],
)
async def test_what_cannot_be_read_says_why(data: bytes, limits: PdfLimits, why: str) -> None:
    with pytest.raises(PdfError, match=why):
        await PdfReader(limits).text(data)


async def test_without_the_library_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.attachments.pdf.importlib.util.find_spec", lambda _: None)
    with pytest.raises(PdfError, match="not_installed"):
        await PdfReader(PdfLimits()).text(pdf("a"))
