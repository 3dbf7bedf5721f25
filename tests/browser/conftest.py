"""One browser and one server for all tests of the folder, in one event loop.

Pictures of the views are written to
`docs/images/` where `TREADLE_SCREENSHOTS` is set, so that a run leaves the checkout as it was.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from tests.browser.looking import Looking, browsing
from tests.browser.scene import Scene, scene

if TYPE_CHECKING:
    from playwright.async_api import Browser

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with browsing() as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def played(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scene]:
    """The server with all that there is to see."""
    async with scene(tmp_path_factory.mktemp("console")) as made:
        await made.play()
        await made.run(max_rows=900)
        await made.many()
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def look(browser: Browser, played: Scene) -> AsyncIterator[Looking]:
    """A new page of a new profile; nothing may go wrong on it."""
    images = IMAGES if os.environ.get("TREADLE_SCREENSHOTS") else None
    looking = await Looking.begin(browser, played.server.url, images)
    yield looking
    await looking.end()
