"""Every view in both lights, in a real browser: it opens, says nothing wrong, and is accessible."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, expect

from tests.browser.looking import Looking
from tests.browser.scene import SESSION, Scene

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def session_of(played: Scene) -> str:
    page = await played.server.http.get(f"/console/api/sessions?q={SESSION}")
    return str(page.json()["sessions"][0]["session"])


async def turns_of(played: Scene, session: str) -> list[str]:
    view = await played.server.http.get(f"/console/api/sessions/{session}")
    return [line["turn"] for line in view.json()["turns"]]


async def test_sessions(look: Looking, played: Scene) -> None:
    async with played.in_the_air():
        await look.open("sessions", ".rows a")
        await expect(look.page.locator("#air")).to_contain_text("3 in the air")
        await look.seen("sessions")


async def test_a_session(look: Looking, played: Scene) -> None:
    session = await session_of(played)
    await look.open(f"sessions/{session}", ".weave a.turn")
    await look.title("Claude Code 2.1.9")
    await expect(look.page.locator(".weave a.turn")).to_have_count(4)
    await expect(look.page.locator(".weave .strip i.reasoning").first).to_be_visible()
    await expect(look.page.locator(".gap a")).to_contain_text("predicate satisfied")
    await look.seen("session")


async def test_a_turn(look: Looking, played: Scene) -> None:
    session = await session_of(played)
    turn = (await turns_of(played, session))[1]
    await look.open(f"sessions/{session}/{turn}", "details.block")
    await look.title("Turn 2")
    await expect(look.page.locator(".parts i.cached").first).to_be_visible()
    await expect(look.page.locator(".parts i.fresh, .parts i.mixed").first).to_be_visible()
    await look.seen("turn")


async def test_a_broken_prefix(look: Looking, played: Scene) -> None:
    session = await session_of(played)
    turn = (await turns_of(played, session))[-1]
    await look.open(f"sessions/{session}/{turn}", ".callout")
    callout = look.page.locator(".callout")
    await expect(callout).to_contain_text("The prefix broke")
    await expect(callout.locator("mark").last).to_contain_text("Today is")
    await callout.scroll_into_view_if_needed()
    await look.page.evaluate("scrollBy(0, 330)")
    await look.seen("prefix")


async def test_tool_runs(look: Looking, played: Scene) -> None:
    await look.open("runs", ".rows a")
    await expect(look.page.locator(".rows a")).to_have_count(len(played.runs))
    await expect(look.page.locator(".rows .badge").first).to_contain_text("budget rows")
    await look.seen("runs")


async def test_a_trajectory(look: Looking, played: Scene) -> None:
    await look.open(f"runs/{played.runs[1]}", "table.data")
    await expect(look.page.locator(".chart .budget-word")).to_be_visible()
    await expect(look.page.locator("figcaption").first).to_contain_text("distinct user_id")
    await expect(look.page.locator("table.data tbody tr")).to_have_count(50)
    await look.page.get_by_label("Only rows where").fill("items > 37")
    await look.page.keyboard.press("Enter")
    await expect(look.page.locator("table.data tbody tr").first).to_contain_text("38")
    look.refusal = 400
    await look.page.get_by_label("Only rows where").fill("no such thing")
    await look.page.keyboard.press("Enter")
    await expect(look.page.get_by_role("status").last).to_contain_text("refused")
    await look.page.get_by_label("Only rows where").fill("")
    await look.page.keyboard.press("Enter")
    await expect(look.page.locator("table.data tbody tr")).to_have_count(50)
    await look.page.evaluate("scrollTo(0, 0)")
    await look.seen("trajectory")


async def test_the_fleet(look: Looking, played: Scene) -> None:
    async with played.in_the_air():
        await look.open("fleet", ".engine")
        await expect(look.page.locator(".engine")).to_have_count(3)
        await expect(look.page.locator(".engine .spark path").first).to_be_attached()
        await look.seen("fleet")


@pytest.mark.parametrize("api", ["Messages", "Responses", "Chat"])
async def test_the_playground_streams(look: Looking, played: Scene, api: str) -> None:
    played.server.says(
        {"think": "They ask for the weather: that is what the tool is for."},
        {"text": "Let me look at the forecast for Bergen."},
        {"call": {"tool": "forecast", "arguments": {"place": "Bergen", "days": 3}}},
        tokens={"step_ms": 1},
    )
    await look.open("play", "form")
    await look.page.get_by_text(api, exact=True).click()
    await look.page.locator("#prompt").press("Control+Enter")
    await expect(look.page.locator(".said.call")).to_contain_text("Bergen")
    kinds = [await one.get_attribute("class") for one in await look.page.locator(".said").all()]
    assert kinds == ["said reasoning", "said text", "said call"]
    await expect(look.page.locator(".stats")).to_contain_text("Stop")
    await expect(look.page.get_by_role("button", name="Send")).to_be_enabled()
    if api == "Messages":
        await look.seen("playground")


async def test_nothing_that_was_written_is_on_a_redacted_page(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    from tests.browser.scene import scene  # noqa: PLC0415 - a server of its own

    async with scene(tmp_path_factory.mktemp("redacted"), redact=True) as made:
        await made.play()
        session = await session_of(made)
        look = await Looking.begin(browser, made.server.url, None)
        told = ""
        for path in (
            f"sessions/{session}",
            *(f"sessions/{session}/{turn}" for turn in await turns_of(made, session)),
            f"runs/{made.runs[0]}",
        ):
            await look.open(path, "main .panel")
            told += await look.page.locator("main").inner_text()
        await expect(look.page.locator("#redacted")).to_be_visible()
        for secret in ("checkout path", "N + 1", "rg -n", "coding agent", "north"):
            assert secret not in told
        await look.end()
