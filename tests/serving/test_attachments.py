"""Files and pictures in requests: what the model sees of them, and what is said of the rest."""

from __future__ import annotations

from typing import Any

import pytest

from tests.actors.attachments.pages import coded, pdf
from tests.serving.asks import PATHS, ask
from tests.serving.server import Server, serving, settings

FILE = coded(pdf("Quarterly figures"))
URL = "http://a.test/report.pdf"


def sent(api: str, data: str, media: str, name: str = "report") -> dict[str, Any]:
    """A request with a file in its question."""
    if api == "messages":
        source = {"type": "base64", "media_type": media, "data": data}
        part: dict[str, Any] = {"type": "document", "title": name, "source": source}
        return ask(api, messages=[{"role": "user", "content": [part]}])
    url = f"data:{media};base64,{data}"
    if api == "chat":
        file = {"type": "file", "file": {"filename": name, "file_data": url}}
        return ask(api, messages=[{"role": "user", "content": [file]}])
    item = {"type": "input_file", "filename": name, "file_data": url}
    return ask(api, input=[{"role": "user", "content": [item]}])


def linked(api: str, url: str = URL) -> dict[str, Any]:
    """A request with a link to a file, where the API knows one."""
    if api == "messages":
        part: dict[str, Any] = {"type": "document", "source": {"type": "url", "url": url}}
        return ask(api, messages=[{"role": "user", "content": [part]}])
    item = {"type": "input_file", "file_url": url}
    return ask(api, input=[{"role": "user", "content": [item]}])


def prompt(server: Server) -> str:
    return server.ingress.models[0].folder.tokenizer.decode(server.engine.jobs[-1].prompt)


@pytest.mark.parametrize("api", PATHS)
async def test_the_text_of_a_pdf_is_read_to_the_model(server: Server, api: str) -> None:
    for _ in range(2):
        answer = await server.http.post(PATHS[api], json=sent(api, FILE, "application/pdf"))
        assert answer.status_code == 200, answer.text
        assert "report\nQuarterly figures" in prompt(server)
        assert "x-treadle-ignored" not in answer.headers
    first, second = server.engine.jobs
    assert first.prompt == second.prompt


@pytest.mark.parametrize("api", PATHS)
async def test_a_file_of_text_is_shown_as_it_is(server: Server, api: str) -> None:
    body = sent(api, coded("naïve,1\n".encode()), "text/csv")
    assert (await server.http.post(PATHS[api], json=body)).status_code == 200
    assert "report\nnaïve,1\n" in prompt(server)


@pytest.mark.parametrize("api", PATHS)
@pytest.mark.parametrize(
    ("data", "media", "why"),
    [
        pytest.param(coded(b"%PDF-1.7 broken"), "application/pdf", "unreadable", id="broken"),
        pytest.param(coded(pdf("", "")), "application/pdf", "no_text", id="scanned"),
        pytest.param(coded(pdf("a", "b", "c")), "application/pdf", "pages_after_2_of_3", id="long"),
        pytest.param("AAAA", "application/zip", "", id="another-kind"),
        pytest.param("/w==", "text/plain", "", id="not-utf-8"),
    ],
)
async def test_what_is_not_seen_is_said(api: str, data: str, media: str, why: str) -> None:
    async with serving(settings(ingress={"attachments": {"pages": 2}})) as server:
        answer = await server.http.post(PATHS[api], json=sent(api, data, media))
        assert answer.status_code == 200, answer.text
        assert why in answer.headers["x-treadle-ignored"]
        metrics = (await server.http.get("/metrics")).text
        assert "treadle_ignored_total" in metrics


async def test_a_pdf_in_a_tools_result_is_read_too(server: Server) -> None:
    source = {"type": "base64", "media_type": "application/pdf", "data": FILE}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": []}
    result["content"] = [{"type": "document", "source": source}, {"type": "text", "text": "end"}]
    call = {"type": "tool_use", "id": "t1", "name": "open", "input": {}}
    talk = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]
    answer = await server.http.post(PATHS["messages"], json=ask("messages", messages=talk))
    assert answer.status_code == 200, answer.text
    assert "Quarterly figures\nend" in prompt(server)


@pytest.mark.parametrize("api", ["messages", "responses"])
async def test_a_link_is_not_followed_unless_it_is_allowed(server: Server, api: str) -> None:
    answer = await server.http.post(PATHS[api], json=linked(api))
    assert answer.status_code == 200, answer.text
    assert "document(url_not_fetched)" in answer.headers["x-treadle-ignored"]


@pytest.mark.parametrize("api", ["messages", "responses"])
async def test_where_links_are_followed_none_leads_into_the_house(api: str) -> None:
    async with serving(settings(ingress={"attachments": {"fetch_urls": True}})) as server:
        body = linked(api, f"{server.url}/v1/models")
        answer = await server.http.post(PATHS[api], json=body)
        assert answer.status_code == 200, answer.text
        assert "document(address_not_allowed)" in answer.headers["x-treadle-ignored"]


async def test_a_count_reads_the_file_too(server: Server) -> None:
    body = sent("messages", FILE, "application/pdf")
    counted = await server.http.post("/v1/messages/count_tokens", json=body)
    turn = await server.http.post(PATHS["messages"], json=body)
    assert counted.json()["input_tokens"] == turn.json()["usage"]["input_tokens"]


async def test_a_request_has_so_many_attachments_at_most(server: Server) -> None:
    url = {"type": "document", "source": {"type": "url"}}
    parts = [url | {"source": {"type": "url", "url": f"http://a/{n}"}} for n in range(40)]
    body = ask("messages", messages=[{"role": "user", "content": parts}])
    answer = await server.http.post(PATHS["messages"], json=body)
    assert answer.status_code == 400
    assert "attachments" in answer.json()["error"]["message"]
