"""Figures of runs: one row each, a table, and plots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.sim.engine import Shape
from benchmarks.sim.fleet import Outcome, Seen
from benchmarks.sim.sessions import Session, walk

BATCH = 24
"""Turns over which a decode step's fixed cost is spread where work is reckoned."""


def work(sessions: Sequence[Session], shape: Shape) -> float:
    """Engine-seconds of all turns if each block were computed once in the whole fleet, and decode
    ran at a batch of `BATCH`. `load` in this benchmark is this work over the fleet's time.
    """
    seen: set[int] = set()
    timing, seconds = shape.timing, 0.0
    for session in walk(sessions):
        for turn in session.turns:
            prompt = turn.chain[: turn.tokens // shape.block]
            known = next((at for at, block in enumerate(prompt) if block not in seen), len(prompt))
            seen.update(turn.chain)
            seconds += timing.prefill_s(turn.tokens - known * shape.block)
            seconds += turn.out * (timing.turn_ms + timing.step_ms / BATCH) / 1000
    return seconds


def at(values: Iterable[float], share: float) -> float:
    """A quantile; -1 where there is nothing."""
    found = sorted(values)
    return found[min(len(found) - 1, int(len(found) * share))] if found else -1.0


def ttft(turns: Iterable[Seen], share: float) -> float:
    return at((turn.ttft for turn in turns if turn.ttft >= 0), share)


def gap(turn: Seen) -> float:
    """Mean time between two tokens."""
    return (turn.seconds - turn.ttft) / max(1, turn.out - 1)


def hit(turns: Sequence[Seen]) -> float:
    return sum(turn.cached for turn in turns) / max(1, sum(turn.tokens for turn in turns))


def imbalance(outcome: Outcome) -> float:
    """The fullest replica's mean of active turns over that of all."""
    active = list(outcome.active.values())
    return max(active) * len(active) / (sum(active) or 1.0)


def row(outcome: Outcome) -> dict[str, float]:
    turns = outcome.turns
    return {
        "turns": len(turns),
        "hit": hit(turns),
        "ttft p50 s": ttft(turns, 0.5),
        "ttft p99 s": ttft(turns, 0.99),
        "imbalance": imbalance(outcome),
        "prefilled M": outcome.prefilled / 1e6,
        "refused": sum(turn.refused for turn in turns),
    }


def table(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """Markdown."""
    names = list(next(iter(rows.values())))
    lines = ["| | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for label, values in rows.items():
        said = (f"{v:.3f}" if isinstance(v, float) else str(v) for v in values.values())
        lines.append(f"| {label} | " + " | ".join(said) + " |")
    return "\n".join(lines)


def plot(title: str, outcomes: Mapping[str, Outcome], folder: Path) -> Path | None:
    """TTFT, hit rate and load of each policy as one PNG; None where matplotlib is absent."""
    try:
        import matplotlib as mpl  # noqa: PLC0415 - the group `bench` alone has it
    except ImportError:
        return None
    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(15, 4))
    for name, outcome in outcomes.items():
        times = sorted(turn.ttft for turn in outcome.turns if turn.ttft >= 0)
        left.plot(times, [n / len(times) for n in range(len(times))], label=name)
        right.plot(sorted(outcome.active.values()), label=name)
    left.set(xscale="log", xlabel="TTFT, s", ylabel="share of turns", title=title)
    left.legend()
    middle.bar(list(outcomes), [hit(outcome.turns) for outcome in outcomes.values()])
    middle.set(ylabel="prefix hit rate", ylim=(0, 1))
    middle.tick_params(axis="x", rotation=30)
    right.set(xlabel="replica, by load", ylabel="mean active turns")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{title.replace(' ', '-')}.png"
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return path
