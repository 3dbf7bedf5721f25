"""Writes the pages that the code says itself: docs/metrics.md and docs/families.md.

Usage: `python -m scripts.reference`. A test compares the pages with what this would write.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import get_args

from actors.replay import STAGES
from families import registry
from families.family import Family
from observe.metrics import PARTS, Metrics
from observe.seen import RouterState
from prompts.doctor import Cause
from router.decision import Why
from toolruns.endings import Ending
from turns.errors import ErrorKind
from turns.events import Cut, Stop
from turns.turn import Api

ROOT = Path(__file__).resolve().parent.parent
NONE = "-"
DASHBOARD = ROOT / "ops" / "grafana" / "treadle.json"

METRICS = """\
# Metrics

Every metric of a server, its labels, and the panel of the
[dashboard](../ops/grafana/treadle.json) that shows it. Written by `just reference` from the code
that counts. How to scrape them, and what else a server tells, is in
[observability](observability.md).

Beside the labels below each has `process`, the ingress that counted: sum over it. Times are in
seconds. A histogram is exposed as `NAME_bucket`, `NAME_sum` and `NAME_count`.
"""

VALUES: dict[tuple[str, str], Iterable[str]] = {
    ("api", ""): get_args(Api),
    ("model", ""): ("the served models", "other"),
    ("kind", ""): get_args(ErrorKind),
    ("kind", "treadle_tokens_total"): ("input", "cached", "output", "reasoning"),
    ("streamed", ""): ("yes", "no"),
    ("stop", ""): get_args(Stop),
    ("stage", ""): ("decode", *STAGES),
    ("part", ""): (*sorted(PARTS), "field"),
    ("cause", ""): get_args(Cause),
    ("why", ""): (*get_args(Why), "hashed"),
    ("outcome", "treadle_tool_calls_total"): ("ready", *(f"cut_{cut}" for cut in get_args(Cut))),
    ("outcome", "treadle_replies_replayed_total"): ("spliced", "rendered"),
    ("outcome", "treadle_tokenizer_memo"): ("hit", "miss"),
    ("ending", ""): tuple(ending.value for ending in Ending),
    ("operation", ""): ("the call of the store",),
    ("figure", "treadle_lane_depth"): ("all", "fullest"),
    ("figure", "treadle_router_state"): RouterState.__struct_fields__[1:],
}
"""What a label may say, by its name and, where it means several things, its metric."""

FAMILIES = """\
# Families

The model families that this version knows, {count} of them; [add a family](add-a-family.md) says
how to bring another, [conformance](conformance.md) what each parser gets right. Written from the
files in `families/` by `just reference`.

`family: auto` in a config recognises the family by the model's folder. The names under which
vLLM, SGLang and Dynamo know the parsers are taken too, alone or as a pair: in
`family: qwen3+qwen3_coder` the first is the reasoning parser, the second the tool parser.

- **Thinking** is what the template does when nothing is said: on, off, or - where the family does
  not reason. Words in brackets are efforts that the template itself takes; for all others
  `efforts` ([clusters](clusters.md#what-is-done-to-a-models-prompts)) can say a budget.
- **Earlier reasoning** in the next prompt: kept always, kept since the last user message, or
  dropped. `+` sets template arguments that keep it while tools are in use.
- **Images**: whether the family is shown pictures.
"""

KEPT = {"always": "kept", "tool_loop": "since the last user message", "never": "dropped"}


def panels() -> dict[str, list[str]]:
    """The titles of the dashboard's panels that ask for a metric, by its name."""
    found: dict[str, list[str]] = {}
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel.get("targets", ()):
            for name in re.findall(r"treadle_\w+", target["expr"]):
                titles = found.setdefault(re.sub(r"_(bucket|sum|count)$", "", name), [])
                if panel["title"] not in titles:
                    titles.append(panel["title"])
    return found


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown."""
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def metrics() -> str:
    """The page of all metrics."""
    shown = panels()
    described = Metrics().described
    rows = [
        (
            f"`{metric.name}`",
            metric.kind,
            ", ".join(f"`{name}`" for name in metric.labels),
            metric.what.rstrip("."),
            ", ".join(shown.get(metric.name, ())) or NONE,
        )
        for metric in described
    ]
    every = table(("metric", "type", "labels", "what", "panel"), rows)
    names = list(dict.fromkeys(name for metric in described for name in metric.labels))
    labels = table(
        ("label", "of", "values"),
        (
            (f"`{name}`", f"`{of}`" if of else "all that have it", ", ".join(values))
            for wanted in names
            for (name, of), values in VALUES.items()
            if name == wanted
        ),
    )
    return f"{METRICS}\n{every}\n## Labels\n\n{labels}"


def thinking(family: Family) -> str:
    """How a family thinks when nothing is said, and which efforts its template knows."""
    controls = family.thinking
    said = NONE if controls.default == "none" else controls.default
    efforts = ", ".join(f"`{name}`" for name in controls.effort)
    budget = f"`{controls.budget_arg}`" if controls.budget_arg else ""
    known = ", ".join(part for part in (efforts, budget) if part)
    return f"{said} ({known})" if known else said


def replay(family: Family) -> str:
    """What becomes of a family's earlier reasoning."""
    if family.thinking.default == "none":
        return NONE
    kept = KEPT[family.replay.keep]
    return " + ".join([kept, *(f"`{name}`" for name in family.replay.agentic)])


def families() -> str:
    """The page of all families of our own."""
    own = {path.stem for path in (ROOT / "families").glob("*.py")}
    known = [family for name, family in sorted(registry.known().items()) if name in own]
    rows = [
        (
            f"`{family.name}`",
            family.title,
            f"`{family.grammar}`",
            thinking(family),
            replay(family),
            "yes" if family.sees_images else NONE,
            f"{family.context_window:,}" if family.context_window else "the model's",
        )
        for family in known
    ]
    head = ("family", "models", "grammar", "thinking", "earlier reasoning", "images", "window")
    names = [
        (
            f"`{family.name}`",
            *(
                ", ".join(f"`{alias}`" for alias in aliases) or NONE
                for aliases in (family.reasoning_aliases, family.tool_aliases)
            ),
        )
        for family in known
    ]
    aliases = table(("family", "as a reasoning parser", "as a tool parser"), names)
    page = FAMILIES.format(count=len(known))
    return f"{page}\n{table(head, rows)}\n## Names elsewhere\n\n{aliases}"


PAGES = {"metrics.md": metrics, "families.md": families}


def main() -> None:
    for name, page in PAGES.items():
        (ROOT / "docs" / name).write_text(page())
        print(f"treadle: docs/{name}")


if __name__ == "__main__":
    main()
