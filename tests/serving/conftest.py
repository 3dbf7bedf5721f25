"""A server for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.serving.server import Server, serving


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as running:
        yield running
