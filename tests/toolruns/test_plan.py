from __future__ import annotations

import pytest

from tests.toolruns.gateway.house import Scripted, call, eventually, house, text_of, tool
from toolruns.plan import PlanError, filled, parse_plan, references
from toolruns.tool import streaming_tool

TOOLS = frozenset({"orders", "users"})


def node(id_, *after, tool_="orders", **arguments):
    return {"id": id_, "tool": tool_, "after": list(after), "arguments": arguments}


def test_what_can_run_together_is_ready_together():
    plan = parse_plan({"nodes": [node("a"), node("b"), node("c", "a", "b"), node("d", "c")]}, TOOLS)
    nothing = frozenset()
    assert [n.id for n in plan.ready(nothing, nothing)] == ["a", "b"]
    assert plan.ready(frozenset("ab"), frozenset("a")) == []
    assert [n.id for n in plan.ready(frozenset("ab"), frozenset("ab"))] == ["c"]


def test_time_is_left_for_what_follows():
    plan = parse_plan(
        {"nodes": [node("a"), node("b", "a"), node("c", "b"), node("x")], "max_seconds": 9}, TOOLS
    )
    assert [plan.seconds(n, 9.0) for n in "abcx"] == [3.0, 4.5, 9.0, 9.0]


def test_references_are_needs_and_are_filled():
    arguments = {
        "ids": {"$from": "a", "column": "user_id"},
        "deep": [{"n": {"$from": "b", "take": "count"}}],
    }
    plan = parse_plan({"nodes": [node("a"), node("b"), node("c", **arguments)]}, TOOLS)
    assert plan.nodes[2].needs() == {"a", "b"}
    values = {path: reference.source for path, reference in references(arguments)}
    assert filled(arguments, values) == {"ids": "a", "deep": [{"n": "b"}]}


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        pytest.param([], "1 to 8 nodes", id="none"),
        pytest.param([node(str(n)) for n in range(9)], "1 to 8 nodes", id="many"),
        pytest.param([node("a"), node("a")], "same id", id="twice"),
        pytest.param([node("a", tool_="rm")], "no streaming tool 'rm'", id="tool"),
        pytest.param([node("a", "z")], "no node 'z'", id="after-nothing"),
        pytest.param([node("a", x={"$from": "z"})], "no node 'z'", id="from-nothing"),
        pytest.param([node("a", "a")], "wait for one another: a", id="itself"),
        pytest.param(
            [node("a", "b"), node("b", x={"$from": "a", "column": "c"})],
            "one another: a, b",
            id="cycle",
        ),
        pytest.param(
            [node("a"), node("b", x={"$from": "a", "take": "all"})], "Invalid enum", id="take"
        ),
        pytest.param([{"id": "a"}], "tool", id="no-tool"),
        pytest.param([{"id": "a", "tool": "orders", "shell": "x"}], "shell", id="field"),
        pytest.param("all", "array", id="text"),
    ],
)
def test_plans_that_make_no_sense(nodes, message):
    with pytest.raises(PlanError, match=message):
        parse_plan({"nodes": nodes}, TOOLS)


@pytest.mark.parametrize("seconds", [0, -1, 1e9])
def test_the_budget_of_a_plan_is_bounded(seconds):
    with pytest.raises(PlanError, match="max_seconds"):
        parse_plan({"nodes": [node("a")], "max_seconds": seconds}, TOOLS)


def users_tool(asked):
    @streaming_tool(
        name="users",
        parameters={
            "type": "object",
            "properties": {"ids": {"type": "array"}, "least": {"type": "number"}},
        },
    )
    async def users(ids=(), least=0):
        asked.append((list(ids), least))
        for user in ids:
            yield {"user_id": user, "name": f"user {user}"}

    return users


async def test_values_flow_from_node_to_node(tmp_path):
    asked = []
    async with house(tmp_path, tool(), users_tool(asked)) as home, home.client() as client:
        result = await call(
            client,
            "stream_plan",
            nodes=[
                node("recent", do="endless", consume_until="count >= 5"),
                node(
                    "who",
                    tool_="users",
                    ids={"$from": "recent", "column": "user_id", "limit": 3},
                    least={"$from": "recent", "column": "amount", "take": "max"},
                ),
            ],
        )
        assert asked == [([0, 1, 2], 31.0)]
        text = text_of(result)
        assert text.startswith(
            "PARTIAL: plan of 2 calls.\n## recent (orders)\nPARTIAL (predicate_satisfied) after 32 rows"
        )
        assert "## who (users)\nCOMPLETE: 3 rows." in text
        assert len(text.encode()) <= 6144 + 200


async def test_a_node_whose_need_failed_is_skipped(tmp_path):
    asked = []
    async with house(tmp_path, tool(), users_tool(asked)) as home, home.client() as client:
        result = await call(
            client,
            "stream_plan",
            nodes=[
                node("broken", do="fail"),
                node("who", tool_="users", ids={"$from": "broken", "column": "user_id"}),
                node("fine", do="end"),
                node("odd", tool_="users", ids={"$from": "fine", "column": "nope"}),
            ],
        )
        text = text_of(result)
        assert "no such shop" in text
        assert "## who (users)\nSKIPPED: broken failed." in text
        assert "## fine (orders)\nCOMPLETE: 96 rows." in text
        assert "FAILED: odd: fine has no column 'nope'; columns: user_id, status, amount" in text
        assert asked == []
        assert not result.is_error


async def test_nodes_without_needs_run_at_the_same_time_under_one_budget(tmp_path):
    async with house(tmp_path) as home, home.client() as client:
        result = await call(
            client,
            "stream_plan",
            nodes=[node("a", do="stuck"), node("b", do="stuck")],
            max_seconds=0.3,
        )
        assert text_of(result).count("PARTIAL (budget_wall_clock)") == 2
        assert [source.reads for source in Scripted.all] == [1, 1]
        await eventually(lambda: all(source.closed for source in Scripted.all))


async def test_a_plan_that_makes_no_sense_opens_nothing(tmp_path):
    async with house(tmp_path) as home, home.client() as client:
        result = await call(
            client, "stream_plan", nodes=[node("a", "b", do="end"), node("b", "a", do="end")]
        )
        assert result.is_error
        assert "wait for one another" in text_of(result)
        assert Scripted.all == []
