"""The console in use: by keyboard, with a thousand sessions, while things happen, from elsewhere."""

from __future__ import annotations

import os

import pytest
from playwright.async_api import Browser, expect

from actors.news import Reader
from tests.browser.looking import ELSEWHERE, Looking
from tests.browser.scene import MANY, SESSION, Scene

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
LISTEN = """() => {
  window.heard = [];
  const air = document.querySelector("#air");
  const told = { childList: true, characterData: true, subtree: true };
  new MutationObserver(() => heard.push(air.textContent)).observe(air, told);
}"""
FOCUSED = "document.activeElement.getAttribute('data-row')"
LISTED = """() => new Promise((resolve) => {
  const look = () => document.querySelector(".rows a") ? resolve(performance.now()) : setTimeout(look, 5);
  look();
})"""


async def test_a_thousand_sessions_are_listed_within_a_second(look: Looking) -> None:
    took = []
    for _ in range(5):  # a machine that does other things too may need a second look
        await look.page.goto("about:blank")
        await look.page.goto(f"{look.url}/console/", wait_until="commit")
        took.append(await look.page.evaluate(LISTED))
        if took[-1] < 1000:
            break
    await expect(look.page.get_by_role("status").last).to_contain_text("1,0")
    assert await look.page.locator(".rows li").count() < 120
    await look.page.evaluate("scrollTo(0, document.body.scrollHeight)")
    last = look.page.locator(f'.rows a[data-row="{MANY}"]')
    await expect(last).to_be_visible()
    assert await look.page.locator(".rows li").count() < 120
    busy = os.getloadavg()[0] / (os.cpu_count() or 1)
    if min(took) >= 1000 and busy > 2:
        pytest.skip(f"{busy:.0f} processes a core say nothing of a second: {took} ms")
    assert min(took) < 1000, took


async def test_sessions_are_found_by_their_words(look: Looking) -> None:
    await look.open("sessions", ".rows a")
    await look.page.keyboard.press("/")
    await look.page.keyboard.type(SESSION)
    await expect(look.page.locator(".rows a")).to_have_count(1)
    await look.page.keyboard.type("-no")
    await expect(look.page.locator(".empty")).to_contain_text("No session matches")
    await look.accessible()


async def test_all_of_it_can_be_reached_by_keyboard(look: Looking) -> None:
    page = look.page
    await look.open("sessions", ".rows a")
    await page.keyboard.press("/")
    await page.keyboard.type(SESSION)
    await expect(page.locator(".rows a")).to_have_count(1)
    await page.keyboard.press("Escape")
    await page.keyboard.press("j")
    assert await page.evaluate(FOCUSED) == "0"
    await page.keyboard.press("Enter")
    await look.title("Claude Code")
    for _ in range(3):
        await page.keyboard.press("j")
    await page.keyboard.press("k")
    assert await page.evaluate(FOCUSED) == "1"
    await page.keyboard.press("Enter")
    await look.title("Turn 2")
    await page.keyboard.press("]")
    await look.title("Turn 3")
    await page.keyboard.press("[")
    await look.title("Turn 2")
    await page.keyboard.press("u")
    await look.title("Claude Code")
    for key, title in (("r", "Tool runs"), ("f", "Fleet"), ("p", "Playground"), ("s", "Sessions")):
        await page.keyboard.press("g")
        await page.keyboard.press(key)
        await look.title(title)
    await page.keyboard.press("?")
    await expect(page.locator("dialog")).to_be_visible()
    await look.accessible()
    await page.keyboard.press("Escape")
    await expect(page.locator("dialog")).to_be_hidden()


async def test_the_light_is_chosen_and_kept(look: Looking) -> None:
    page = look.page
    await page.emulate_media(color_scheme="light")
    await look.open("sessions", ".rows a")
    light = await page.evaluate("getComputedStyle(document.body).backgroundColor")
    for _ in range(2):
        await page.keyboard.press("t")
    dark = await page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark != light
    await page.reload()
    assert await page.evaluate("getComputedStyle(document.body).backgroundColor") == dark
    await page.locator("#theme").click()
    assert await page.evaluate("getComputedStyle(document.body).backgroundColor") == light


async def test_what_happens_is_seen_without_reloading(look: Looking, played: Scene) -> None:
    await look.open("sessions?q=fresh-one", "main .empty")
    await expect(look.page.locator("#air")).not_to_contain_text("connecting")
    played.server.says({"text": "Hello."})
    body = {"model": "lab-model", "messages": [{"role": "user", "content": "Hi"}]}
    who = {"x-session-id": "fresh-one", "user-agent": "curl/8.11"}
    await played.server.http.post("/v1/chat/completions", json=body, headers=who)
    row = look.page.locator(".rows a")
    await expect(row).to_contain_text("curl 8.11")
    await row.click()
    await expect(look.page.locator(".weave a.turn")).to_have_count(1)
    await played.server.http.post("/v1/chat/completions", json=body, headers=who)
    await expect(look.page.locator(".weave a.turn")).to_have_count(2)


async def test_a_stream_that_is_cut_and_comes_back_is_not_felt(
    look: Looking, played: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(Reader.pieces.__kwdefaults__, "life", 0.2)
    async with played.in_the_air():
        await look.open("sessions", ".rows a")
        await expect(look.page.locator("#air")).to_contain_text("3 in the air")
        await look.page.evaluate(LISTEN)
        for _ in range(3):
            async with look.page.expect_request("**/api/events*"):
                pass
        assert await look.page.evaluate("heard") == []


async def test_what_is_gone_says_so(look: Looking) -> None:
    look.refusal = 404
    await look.open("sessions/none", ".empty")
    await expect(look.page.locator(".empty")).to_contain_text("not kept any more")
    await look.accessible()


async def test_a_page_under_another_name_shows_nothing(browser: Browser, played: Scene) -> None:
    """A name that points at this machine is not this machine's own: as when DNS is turned round."""
    url = played.server.url.replace("127.0.0.1", ELSEWHERE)
    look = await Looking.begin(browser, url, None)
    look.refusal = 401
    await look.page.goto(f"{url}/console/")
    await expect(look.page.locator(".empty")).to_contain_text("not open to you")
    await expect(look.page.locator("#air")).to_contain_text("closed")
    await look.accessible()
    await look.end()


async def test_a_narrow_page_needs_no_sideways_scrolling(look: Looking, played: Scene) -> None:
    await look.page.set_viewport_size({"width": 390, "height": 800})
    for view in ("sessions", "runs", f"runs/{played.runs[1]}", "fleet", "play"):
        await look.open(view, "main .panel")
        assert await look.page.evaluate("document.documentElement.scrollWidth") <= 390, view
