"""Conversations: items that requests name instead of sending them."""

from __future__ import annotations

from typing import Any

from tests.serving.asks import PATHS
from tests.serving.server import MODEL, Server

PATH = "/v1/conversations"


def user(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": text}


async def items(server: Server, name: str) -> list[dict[str, Any]]:
    return (await server.http.get(f"{PATH}/{name}/items?order=asc")).json()["data"]


async def test_turns_of_a_conversation_follow_each_other(server: Server) -> None:
    server.says({"text": "Well."})
    made = (await server.http.post(PATH, json={"items": [user("I am Ada.")]})).json()
    assert (made["object"], made["metadata"]) == ("conversation", {})
    for n, how in enumerate((made["id"], {"id": made["id"]})):
        body = {"model": MODEL, "input": f"question {n}", "conversation": how}
        answer = (await server.http.post(PATHS["responses"], json=body)).json()
        assert answer["conversation"] == {"id": made["id"]}
    found = await items(server, made["id"])
    assert [item["role"] for item in found] == ["user", "user", "assistant", "user", "assistant"]
    assert len({item["id"] for item in found}) == 5
    text = server.ingress.models[0].folder.tokenizer.decode(server.engine.jobs[-1].prompt)
    assert text.index("I am Ada.") < text.index("question 0") < text.index("question 1")


async def test_a_conversation_equals_its_items_sent(server: Server) -> None:
    made = (await server.http.post(PATH, json={})).json()
    body = {"model": MODEL, "conversation": made["id"]}
    await server.http.post(PATHS["responses"], json=body | {"input": "one"})
    sent = [*await items(server, made["id"]), user("two")]
    await server.http.post(PATHS["responses"], json=body | {"input": "two"})
    await server.http.post(PATHS["responses"], json={"model": MODEL, "input": sent})
    first, second = server.engine.jobs[-2:]
    assert first.prompt == second.prompt


async def test_its_metadata_and_items_can_be_changed(server: Server) -> None:
    name = (await server.http.post(PATH, json={"metadata": {"a": "1"}})).json()["id"]
    changed = (await server.http.post(f"{PATH}/{name}", json={"metadata": {"b": "2"}})).json()
    assert changed == (await server.http.get(f"{PATH}/{name}")).json()
    assert changed["metadata"] == {"b": "2"}
    added = await server.http.post(f"{PATH}/{name}/items", json={"items": [user("x"), user("y")]})
    first, second = added.json()["data"]
    one = await server.http.get(f"{PATH}/{name}/items/{first['id']}")
    assert one.json() == first
    gone = await server.http.delete(f"{PATH}/{name}/items/{first['id']}")
    assert gone.json()["id"] == name
    assert await items(server, name) == [second]
    many = await server.http.post(f"{PATH}/{name}/items", json={"items": [user("x")] * 21})
    assert many.status_code == 400


async def test_what_is_not_there_is_not_found(server: Server) -> None:
    name = (await server.http.post(PATH, json={"items": [user("x")]})).json()["id"]
    assert (await server.http.delete(f"{PATH}/{name}")).json()["deleted"] is True
    for method, path in (
        ("GET", f"{PATH}/{name}"),
        ("DELETE", f"{PATH}/{name}"),
        ("GET", f"{PATH}/{name}/items"),
        ("GET", f"{PATH}/{name}/items/item_x"),
        ("DELETE", f"{PATH}/{name}/items/item_x"),
    ):
        assert (await server.http.request(method, path)).status_code == 404
    body = {"model": MODEL, "input": "x", "conversation": name}
    assert (await server.http.post(PATHS["responses"], json=body)).status_code == 404


async def test_another_owner_has_none_of_it(server: Server) -> None:
    headers = {"authorization": "Bearer mine"}
    name = (await server.http.post(PATH, json={}, headers=headers)).json()["id"]
    assert (await server.http.get(f"{PATH}/{name}", headers=headers)).status_code == 200
    assert (await server.http.get(f"{PATH}/{name}")).status_code == 404


async def test_a_request_goes_on_from_one_thing(server: Server) -> None:
    name = (await server.http.post(PATH, json={})).json()["id"]
    first = await server.http.post(PATHS["responses"], json={"model": MODEL, "input": "x"})
    body = {"model": MODEL, "input": "x", "conversation": name}
    both = await server.http.post(
        PATHS["responses"], json=body | {"previous_response_id": first.json()["id"]}
    )
    assert both.status_code == 400


async def test_a_turn_that_failed_adds_nothing(server: Server) -> None:
    name = (await server.http.post(PATH, json={})).json()["id"]
    server.says({"text": "x y z"}, fail_after=1)
    body = {"model": MODEL, "input": "x", "conversation": name, "stream": True}
    await server.http.post(PATHS["responses"], json=body)
    assert await items(server, name) == []
