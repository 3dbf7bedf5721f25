"""What `/metrics` shows: this ingress, every other one, and what turns really did."""

from __future__ import annotations

from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from actors.gossip import Gossip
from deployments.edge import FIGURES
from observe.metrics import Metrics
from sessions.memory_store import MemoryStore
from tests.observe.conftest import tell_all
from tests.serving.keyed import asking
from tests.serving.server import Server, serving


async def scraped(server: Server) -> dict[tuple[str, str], float]:
    """Values by sample name and process, other labels summed over."""
    found: dict[tuple[str, str], float] = {}
    text = (await server.http.get("/metrics")).text
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = (sample.name, sample.labels.get("process", ""))
            found[key] = found.get(key, 0) + sample.value
    return found


async def test_whichever_ingress_is_asked_all_are_seen() -> None:
    store = MemoryStore()
    async with serving(store=store) as server:
        server.says({"text": "Hello."})
        await server.http.post("/v1/messages", json=asking("/v1/messages"))
        there = Metrics(["lab-model"])
        tell_all(there)
        other = Gossip(store, "ingress-2")
        other.tell(FIGURES, there.snapshot)
        await other.once()
        await server.outside.gossip.once()
        found = await scraped(server)
        assert found["treadle_turns_received_total", ""] == 1
        assert found["treadle_turns_received_total", "ingress-2"] == 2
        await other.once()
        other_heard = other.heard(FIGURES)
        assert list(other_heard) == ["ingress"]
        shown = there.render("ingress-2", other_heard).decode()
        assert 'treadle_turns_received_total{api="messages",model="lab-model"' in shown


async def test_gaps_leads_and_depths_are_those_of_real_turns() -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    tool: dict[str, Any] = {"name": "weather", "input_schema": schema}
    async with serving() as server:
        server.says({"call": {"tool": "weather", "arguments": {"city": "Oslo"}}})
        body = asking("/v1/messages", tools=[tool], max_tokens=200)
        answer = await server.http.post("/v1/messages", json=body)
        assert answer.json()["stop_reason"] == "tool_use", answer.text
        found = await scraped(server)
    assert found["treadle_gap_seconds_count", ""] == 1
    assert found["treadle_longest_gap_seconds_count", ""] == 1
    assert found["treadle_dispatch_lead_seconds_count", ""] == 1
    assert found["treadle_lane_depth", ""] == 0


async def test_what_the_gate_refuses_is_counted(monkeypatch: Any) -> None:
    monkeypatch.setenv("TREADLE_ADMIN_KEY", "x" * 20)
    async with serving() as server:
        await server.http.get("/v1/treadle/admin/keys")
        found = await scraped(server)
    assert found["treadle_turned_away_total", ""] == 1
