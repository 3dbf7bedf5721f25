"""A page as a test looks at it: what went wrong on it, what it asked for, how accessible it is."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, BrowserContext, Page, Request, async_playwright, expect

ELSEWHERE = "gpu.example"
"""A name of this machine that is no name of a loopback."""

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    f"--host-resolver-rules=MAP {ELSEWHERE} 127.0.0.1",
]
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
COLOURS = ["color-contrast"]
expect.set_options(timeout=20_000)
SIZE = {"width": 1280, "height": 860}


@asynccontextmanager
async def browsing() -> AsyncIterator[Browser]:
    """The system's Chromium: nothing is downloaded. The test is skipped where there is none."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    async with async_playwright() as playwright:
        running = await playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield running
        await running.close()


@cache
def axe() -> str:
    return (files("axe_playwright_python") / "axe.min.js").read_text()


class Looking:
    """`wrong` has what the console said and the page threw, `asked` the addresses it fetched;
    `refusal` is a status that the test makes the server answer, which the browser complains of.
    """

    def __init__(self, context: BrowserContext, page: Page, url: str, images: Path | None) -> None:
        self.context = context
        self.page = page
        self.url = url
        self.wrong: list[str] = []
        self.asked: list[str] = []
        self.refusal = 0
        self._images = images
        page.on("console", lambda said: self._said(said.type, said.text))
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("request", self._request)

    @classmethod
    async def begin(cls, browser: Browser, url: str, images: Path | None, **how: Any) -> Looking:
        context = await browser.new_context(
            **{"viewport": SIZE, "reduced_motion": "reduce", "bypass_csp": False} | how
        )
        context.set_default_timeout(15_000)
        return cls(context, await context.new_page(), url, images)

    async def end(self) -> None:
        await self.context.close()
        assert not self.wrong, self.wrong
        elsewhere = [one for one in self.asked if not one.startswith((self.url, "data:"))]
        assert not elsewhere, elsewhere

    def _said(self, kind: str, text: str) -> None:
        refused = f"the server responded with a status of {self.refusal}"
        if kind in {"error", "warning"} and refused not in text:
            self.wrong.append(text)

    def _request(self, request: Request) -> None:
        self.asked.append(request.url)

    async def open(self, view: str, wanted: str = "h1") -> None:
        """Open a view and wait until something of it is there."""
        await self.page.goto(f"{self.url}/console/#/{view}")
        await expect(self.page.locator(wanted).first).to_be_visible()

    async def title(self, text: str) -> None:
        await expect(self.page.locator("h1")).to_contain_text(text)

    async def accessible(self, rules: Any = RULES) -> None:
        """Nothing that axe-core finds fault with. Its script is evaluated by the debugger, which
        the page's own policy does not hold for.
        """
        if not await self.page.evaluate("'axe' in window"):
            await self.page.evaluate(axe())
        found = await self.page.evaluate(f"axe.run(document, {json.dumps({'runOnly': rules})})")
        faults = [
            f"{fault['id']}: {node['target']} {node['failureSummary']}"
            for fault in found["violations"]
            for node in fault["nodes"]
        ]
        assert not faults, "\n".join(faults)

    async def seen(self, name: str) -> None:
        """The view is accessible in both lights, and has its picture taken in both."""
        await self.page.evaluate("document.activeElement.blur()")
        await self.page.emulate_media(color_scheme="light", reduced_motion="reduce")
        await self.accessible()
        await self.picture(f"{name}-light")
        await self.page.emulate_media(color_scheme="dark", reduced_motion="reduce")
        await self.accessible(COLOURS)
        await self.picture(f"{name}-dark")

    async def picture(self, name: str) -> None:
        """Write `docs/images/<name>.png`, where pictures are wanted."""
        if self._images is not None:
            self._images.mkdir(parents=True, exist_ok=True)
            await self.page.screenshot(path=self._images / f"{name}.png")
