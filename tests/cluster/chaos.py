"""Chaos: seeded kills of every kind of process under load; every stream must end complete.

The answers are known, so what is lost or comes twice is seen. Only who holds the client's connection
(ingress, HAProxy) may cut it; the client then asks again, as harnesses do.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle, islice

import psutil

from actors.engines.scripted.compose import WORDS
from benchmarks.served import Server
from benchmarks.sse_load import http
from tests.cluster import wire
from tests.cluster.asks import APIS, PATHS, ask
from tests.cluster.churn import ENDS
from tests.cluster.control import ENGINE, Control, until
from tests.protocols.apis import problems

PATIENCE = 60.0
REPLACED_WITHIN = 240.0
"""Seconds for another process in place of one that died: Ray starts them slowly on a full machine."""

FROZEN_FOR = 10.0
"""Seconds that a frozen engine stays so: its turns leave it in this time."""

KINDS = {
    "engine": 12,
    "freeze": 1,
    "parser": 3,
    "router": 1,
    "valkey": 1,
    "controller": 1,
    "ingress": 1,
    "haproxy": 1,
}
"""What is killed, and how often beside the others."""


@dataclass
class Seen:
    """What became of the streams: those that nobody took were `refused`, those that had begun `cut`.
    `gap` is the longest time without a new word, in seconds.
    """

    whole: int = 0
    cut: int = 0
    refused: int = 0
    gap: float = 0.0
    wrong: list[str] = field(default_factory=list)
    kills: dict[str, int] = field(default_factory=dict)


class Load:
    """Clients that ask one turn after the other until they are told to stop."""

    def __init__(
        self, port: int, seed: int, seen: Seen, *, words: tuple[int, int] = (100, 600)
    ) -> None:
        self._port = port
        self._words = words
        self._chance = random.Random(seed)
        self._number = 0
        self.seen = seen
        self.over = False

    async def client(self) -> None:
        while not self.over:
            api, words = self._chance.choice(APIS), self._chance.randint(*self._words)
            self._number += 1
            body = ask(api, f"say {words} words (number {self._number})")
            request, asked = http(PATHS[api], body, self._port), False
            while not asked:
                asked = await self._asked(api, request, words)
                await asyncio.sleep(0 if asked else 0.5)

    async def _asked(self, api: str, request: bytes, words: int) -> bool:
        """One stream. False when its connection was cut, or nobody answers: ask again."""
        got, last = b"", time.monotonic()
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            return self._again(got)
        try:
            writer.write(request)
            while True:
                async with asyncio.timeout(PATIENCE):
                    data = await reader.read(65536)
                if not data:
                    break
                got += data
                now = time.monotonic()
                if wire.DELTAS[api] in data:
                    if got.count(wire.DELTAS[api]) > data.count(wire.DELTAS[api]):
                        self.seen.gap = max(self.seen.gap, now - last)
                    last = now
        except TimeoutError:
            self.seen.wrong.append(f"{api}: silent for {PATIENCE:g} s after {got[-200:]!r}")
            return True
        except OSError:
            return self._again(got)
        finally:
            writer.close()
        return self._judged(api, got, words)

    def _again(self, got: bytes) -> bool:
        """Asked again: cut short, or nobody was behind the proxy."""
        if b" 200 " in got.partition(b"\r\n")[0]:
            self.seen.cut += 1
        else:
            self.seen.refused += 1
        return False

    def _judged(self, api: str, got: bytes, words: int) -> bool:
        head, _, chunked = got.partition(b"\r\n\r\n")
        status = head.split(b"\r\n")[0]
        if not chunked.endswith(b"0\r\n\r\n") or b" 50" in status:
            return self._again(got)
        body = dechunked(chunked)
        if b" 200 " not in status or ENDS[api] not in body:
            self.seen.wrong.append(f"{api}: {status!r} ... {body[-300:]!r}")
        elif problems(api, body):
            self.seen.wrong.append(f"{api}: {problems(api, body)}")
        elif wire.text(api, body) != " ".join(islice(cycle(WORDS), words)):
            self.seen.wrong.append(f"{api}: not the {words} words: {wire.text(api, body)[:200]!r}")
        else:
            self.seen.whole += 1
        return True


def dechunked(data: bytes) -> bytes:
    """The body of a response in chunks."""
    body = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        length = int(size, 16)
        body, data = body + data[:length], data[length + 2 :]
        if not length:
            break
    return body


class Killer:
    """Kills one process after the other, each while turns run and when the last is replaced."""

    def __init__(self, server: Server, control: Control, seed: int, seen: Seen) -> None:
        self._server = server
        self._control = control
        self._chance = random.Random(seed)
        self._seen = seen

    def strike(self, kind: str) -> None:
        self._kill(kind, until("turns that run", self._busy, within=PATIENCE))
        self._seen.kills[kind] = self._seen.kills.get(kind, 0) + 1
        try:
            until(f"whole after {kind}", self._whole, within=REPLACED_WITHIN, every=0.2)
        except AssertionError as error:
            error.add_note(f"known to Serve, to the router, to the ingress: {self._known()}")
            raise

    def _busy(self) -> list[int]:
        """The processes of the engines that run turns; the router may know of dead ones."""
        alive = self._control.replicas(ENGINE)
        found = sorted(self._control.engines().items())
        return [alive[name] for name, one in found if one["open_turns"] and name in alive]

    def _whole(self) -> bool:
        with contextlib.suppress(AssertionError):  # who is asked may be the one that died
            return self._server.status("/health") == 200 and self._control.whole()
        return False

    def _known(self) -> tuple[object, object, object]:
        control = self._control
        return control.replicas(ENGINE), control.routed(), control.ingress()

    def _kill(self, kind: str, busy: list[int]) -> None:
        control = self._control
        match kind:
            case "engine" | "freeze":
                pid = self._chance.choice(busy)
                if kind == "engine":
                    control.kill(pid)
                else:
                    psutil.Process(pid).suspend()
                    time.sleep(FROZEN_FOR)
                    control.kill(pid)
            case "parser":
                control.kill(self._chance.choice(sorted(control.parsers().values())))
            case _:
                pid = until(f"a {kind}", partial(self._running, kind), within=REPLACED_WITHIN)
                control.kill(pid)

    def _running(self, kind: str) -> int:
        """Its process, 0 while the last one that died is not replaced: the controller is in nobody's
        way.
        """
        with contextlib.suppress(RuntimeError):
            return int(self._server.process_of(kind).pid)
        return 0


async def chaos(
    server: Server,
    control: Control,
    kinds: list[str],
    *,
    seed: int,
    clients: int,
    told: Callable[[Seen], None] = lambda _: None,
) -> Seen:
    """The load, with a kill of each of `kinds` in their order; `told` after each of what is seen."""
    seen = Seen()
    load, killer = Load(server.port, seed, seen), Killer(server, control, seed, seen)
    running = [asyncio.ensure_future(load.client()) for _ in range(clients)]
    try:
        for kind in kinds:
            await asyncio.to_thread(killer.strike, kind)
            told(seen)
    finally:
        load.over = True
        await asyncio.gather(*running)
    await asyncio.to_thread(control.assert_idle, 60)
    return seen


def drawn(kills: int, seed: int, kinds: list[str]) -> list[str]:
    """So many kinds by their weights, each at least once."""
    chance = random.Random(seed)
    more = chance.choices(kinds, [KINDS[k] for k in kinds], k=max(0, kills - len(kinds)))
    found = [*kinds, *more][:kills]
    chance.shuffle(found)
    return found
