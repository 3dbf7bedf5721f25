"""What the console is shown in its tests: real turns of a coding agent, real runs of a streaming
tool, and a thousand sessions beside them.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from actors.board import ROW, ROWS
from observe.record import Row
from sessions.store import write
from tests.serving.server import MODEL, Server, serving, settings
from tests.serving.waits import until
from toolruns.contract import Cadence, Column, Contract, Defaults
from toolruns.decisions import Question
from toolruns.gateway.caller import Caller
from toolruns.gateway.calls import Calls, Settings
from toolruns.gateway.trajectories import Trajectories
from toolruns.rows.books import FolderBook
from toolruns.rows.keeper import Keeper
from toolruns.rows.sandbox import Sandbox
from toolruns.rows.store import RowStore
from toolruns.sources.generator import GeneratorSource
from toolruns.tool import Tool

SESSION = "checkout-latency-4b1e"
AGENT = "claude-cli/2.1.9 (external, cli)"
HEADERS = {"x-session-id": SESSION, "user-agent": AGENT, "authorization": "Bearer lab"}
MANY = 1000
PACE = {"step_ms": 3, "first_after_ms": 60}

SYSTEM = (
    "You are a coding agent. You work in the user's repository through tools: read before you "
    "write, run the tests after each change, and say plainly what you found. "
) * 6
TOOLS = [
    {
        "name": name,
        "description": what,
        "input_schema": {
            "type": "object",
            "properties": {field: {"type": "string"} for field in fields},
            "required": list(fields),
        },
    }
    for name, what, fields in (
        ("Bash", "Run a command in the shell and give back what it prints.", ("command",)),
        ("Read", "Read a file of the repository.", ("path",)),
        ("Edit", "Replace one string in a file by another.", ("path", "old", "new")),
        ("orders", "Orders of the shop, as a stream of rows.", ("shop", "consume_until")),
    )
]
UNTIL = "count >= 40 AND distinct(user_id) >= 24"


def thought(text: str) -> dict[str, Any]:
    return {"think": text}


def called(tool: str, **arguments: str) -> dict[str, Any]:
    return {"call": {"tool": tool, "arguments": arguments}}


REPLIES: list[list[dict[str, Any]]] = [
    [
        thought("The user says that checkout is slow for some shops. First I look at the code."),
        {"text": "I will look at the checkout path first."},
        called("Bash", command="rg -n 'def checkout' src/ | head"),
        called("Read", path="src/checkout.py"),
    ],
    [
        thought("It awaits one query per cart item. Is that what the slow shops have in common?"),
        {"text": "The handler runs one query per item. Let me see which orders are slow."},
        called("orders", shop="north", consume_until=UNTIL),
    ],
    [
        thought("24 users are enough: every slow order has more than 30 items. It is N + 1."),
        {"text": "Confirmed: the slow orders are the ones with many items."},
        called("Edit", path="src/checkout.py", old="for item in cart:", new="items = await many("),
        called("Bash", command="pytest -q tests/test_checkout.py"),
    ],
    [
        thought("All green. I should say what was changed and what it costs now."),
        {
            "text": "Checkout now loads all items in one query. The tests pass: 41 passed. For a "
            "cart of 34 items that is 1 query instead of 35."
        },
    ],
]
RESULTS = {
    "Bash": "src/checkout.py:41: async def checkout(cart): ...\n41 passed in 2.31s",
    "Read": "async def checkout(cart):\n    for item in cart:\n        await price(item)\n" * 6,
    "Edit": "edited",
    "orders": "PARTIAL (predicate_satisfied) after 64 rows; source has more.",
}


class Scene:
    """A server with all this in it. `runs` are the handles of the streaming tool's runs."""

    def __init__(self, server: Server, calls: Calls) -> None:
        self.server = server
        self.calls = calls
        self.runs: list[str] = []

    async def play(self) -> None:
        """The agent's session, with a system prompt that changes under it in the last turn."""
        body: dict[str, Any] = {
            "model": MODEL,
            "max_tokens": 2000,
            "system": SYSTEM,
            "tools": TOOLS,
            "thinking": {"type": "enabled", "budget_tokens": 1024},
            "messages": [{"role": "user", "content": "Checkout is slow for some shops. Why?"}],
        }
        for n, reply in enumerate(REPLIES):
            if n == len(REPLIES) - 1:
                body["system"] = "Today is 2026-11-30. " + SYSTEM
            self.server.says(*reply, tokens=PACE)
            content = await self._turn(body)
            made = [block for block in content if block["type"] == "tool_use"]
            results = [await self._result(block) for block in made]
            told = results or "Thank you. Anything else?"
            body["messages"] = [
                *body["messages"],
                {"role": "assistant", "content": content},
                {"role": "user", "content": told},
            ]
        await asyncio.wait_for(self.server.board.settled(), 20)

    async def _turn(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        answer = await self.server.http.post("/v1/messages", json=body, headers=HEADERS)
        content: list[dict[str, Any]] = answer.json()["content"]
        return content

    async def _result(self, block: dict[str, Any]) -> dict[str, Any]:
        if block["name"] == "orders":
            await self.run(block["id"], consume_until=UNTIL)
        text = RESULTS[block["name"]]
        return {"type": "tool_result", "tool_use_id": block["id"], "content": text}

    async def run(self, call_id: str = "", **arguments: Any) -> str:
        """A run of the streaming tool; its handle."""

        async def report(_progress: float, _message: str) -> None:
            pass

        meta = {"claudecode/toolUseId": call_id} if call_id else {}
        caller = Caller("lab", AGENT, meta=meta)
        result = await self.calls.stream("orders", {"shop": "north", **arguments}, caller, report)
        self.runs.append(result.view["handle"])
        return self.runs[-1]

    @contextlib.asynccontextmanager
    async def in_the_air(self) -> AsyncIterator[None]:
        """While inside, three turns do not end."""
        self.server.says(thought("Let me think about this for a good while."), hang_after=7)
        asking = [
            asyncio.ensure_future(
                self.server.http.post(
                    "/v1/chat/completions",
                    json={
                        "model": MODEL,
                        "stream": True,
                        "messages": [{"role": "user", "content": f"Review module {n}. " * 40}],
                    },
                    headers={"x-session-id": f"review-{n}", "user-agent": "codex_cli_rs/0.61.0"},
                )
            )
            for n in range(3)
        ]
        try:
            await until(lambda: len(self.server.conductor) == len(asking))
            await self.server.board.beat()
            yield
        finally:
            for one in asking:
                one.cancel()
            await asyncio.wait(asking)
            await until(lambda: len(self.server.conductor) == 0)

    async def many(self) -> None:
        """Sessions as other ingresses wrote them."""
        agents = [AGENT, "codex_cli_rs/0.61.0", "opencode/1.4.2", "OpenAI/Python 3.1.0", "qwen/0.9"]
        now = time.time()
        rows = [
            Row(
                session=f"{n:018x}",
                key=f"{('api', 'web', 'infra', 'docs')[n % 4]}-{n * 7919 % 65521:04x}",
                owner="",
                first=now - 60 - 40 * n,
                last=now - 50 - 37 * n,
                harness=agents[n * n % len(agents)],
                model=MODEL,
                api="messages",
                turns=1 + n * 13 % 60,
                failed=int(n % 41 == 7),
                calls=n * 11 % 90,
                breaks=int(n % 17 == 3) * (1 + n % 3),
                input=4000 + n * 7717 % 900_000,
                cached=(4000 + n * 7717 % 900_000) * (97 - n * 31 % 90) // 100,
                output=200 + n * 977 % 40_000,
                seconds=3.0,
            )
            for n in range(MANY)
        ]
        names = [f"other/{row.session}" for row in reversed(rows)]
        store = self.server.store
        await store.put(*(write(ROW, "", f"other/{r.session}", r, ttl=3600) for r in rows))
        await store.append(ROWS, "", "all", names, ttl=3600, keep=5000)


async def orders(shop: str) -> AsyncIterator[list[dict[str, Any]]]:
    """Orders without end, a few new users in each page, fewer as it goes on."""
    for page in range(400):
        yield [
            {
                "order_id": 9000 + page * 32 + n,
                "user_id": (page * 32 + n) ** 2 % (11 + 4 * page) + 100,
                "items": 1 + (page * 7 + n * 5) % 38,
                "seconds": round(0.08 * (1 + (page * 7 + n * 5) % 38) + 0.01 * n, 2),
                "shop": shop,
            }
            for n in range(32)
        ]
        await asyncio.sleep(0.055)  # longer than a source lingers: each page is a chunk


def tool() -> Tool:
    contract = Contract(
        "unbounded",
        columns=(Column("user_id", key=True), Column("seconds", key=True)),
        synopsis=Cadence(every_chunks=2, every_seconds=0.5),
        defaults=Defaults(max_rows=2000, max_seconds=10.0),
        handle_ttl_seconds=3600.0,
    )
    parameters = {"type": "object", "properties": {"shop": {"type": "string"}}}
    return Tool(
        "orders",
        "Orders of the shop.",
        contract,
        lambda arguments, _cursor: GeneratorSource(lambda: orders(arguments["shop"])),
        parameters,
    )


async def decide(question: Question) -> str:
    """The model goes on until it has seen a few hundred rows."""
    rows = json.dumps(question.text).count("user_id")
    return json.dumps({"decision": "continue" if rows else "stop"})


@contextlib.asynccontextmanager
async def scene(folder: Path, *, redact: bool = False) -> AsyncIterator[Scene]:
    """A running server with the streaming tool beside it; nothing was asked yet."""
    engine = {"replicas": 3, "options": {"inline": True, "kv_blocks": 400, "max_model_len": 6000}}
    chosen = settings(model={"family": "qwen3_5", "engine": engine}, console={"redact": redact})
    rows = folder / "rows"
    keeper, sandbox = Keeper(FolderBook(rows), RowStore(rows)), Sandbox(rows)
    calls = Calls(
        [tool()], keeper, sandbox, settings=Settings(decisions="automatic"), decide=decide
    )
    async with serving(chosen) as server:
        server.runs = Trajectories(calls.tools, keeper, sandbox).told
        try:
            yield Scene(server, calls)
        finally:
            await calls.drain()
