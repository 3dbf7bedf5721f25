"""The matrix of families and cases, in four states, as a page.

Run: `python -m tests.conformance.matrix` prints it and writes `docs/conformance.md`.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from tests.conformance.corpus import CORPUS, ROOT, Case, cases, runs
from tests.conformance.recorded import DIFFERENT, different, fixtures, name_of
from tests.conformance.states import KNOWN_BROKEN, NOT_APPLICABLE, UNIMPLEMENTED
from tests.conformance.verdict import problems

PAGE = ROOT / "docs" / "conformance.md"
HEAD = """# Conformance

What the parsers make of a corpus of real faults, family by family: every case under every chunking,
as a transport of plain text and as one of token ids, streamed and folded. Written by
`python -m tests.conformance.matrix`; the tests of `tests/conformance` assert each state.

- **works**: every run gives the expected reply, and every cut gives the same one
- **known broken**: a fault that is known, asserted to be there until it is fixed
- **not applicable**: the case asks for something that this machine does not do, with the reason
- **unimplemented**: the family's grammar is still to be written
"""


def state(case: Case) -> tuple[str, str]:
    """The state of a case, and what there is to say about it."""
    name = case["id"]
    if case["family"] in UNIMPLEMENTED:
        return "unimplemented", ""
    if name in NOT_APPLICABLE:
        return "not applicable", NOT_APPLICABLE[name]
    if name in KNOWN_BROKEN:
        return "known broken", KNOWN_BROKEN[name]
    found = list(runs(case))
    wrong = [problem for run in found for problem in problems(case, run)]
    if wrong:
        return "BROKEN", wrong[0]
    both = sum(run.ids for run in found)
    return "works", f"{len(found) - both} text, {both} ids"


def page(every: list[Case]) -> str:
    """The whole page."""
    rows: dict[str, list[str]] = defaultdict(list)
    counts: dict[str, int] = defaultdict(int)
    for case in every:
        which, note = state(case)
        counts[which] += 1
        hard = " (hard)" if case["compare"].get("hard") else ""
        rows[case["family"]].append(f"| {case['id']}{hard} | {which} | {note} |")
    total = ", ".join(f"{count} {which}" for which, count in sorted(counts.items()))
    parts = [HEAD, f"{len(every)} cases: {total}.\n"]
    for family in sorted(rows):
        parts.append(f"## {family}\n\n| case | state | runs |\n|---|---|---|")
        parts.append("\n".join(rows[family]) + "\n")
    return "\n".join([*parts, recorded()])


def recorded() -> str:
    """The recorded outputs of canitoolcall: how many, family by family, and the differences."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for fixture in fixtures():
        count = counts[name_of(fixture)]
        count[0] += 1
        count[1] += not different(fixture)
    total = [sum(column) for column in zip(*counts.values(), strict=True)]
    rows = [f"| {name} | {count} | {same} |" for name, (count, same) in sorted(counts.items())]
    notes = [f"- `{name}`: {why}" for name, why in DIFFERENT.items()]
    return "\n".join(
        [
            "## Recorded outputs\n",
            f"{total[1]} of the {total[0]} outputs that canitoolcall recorded are read as recorded,",
            "as tokens and as text under every cut. Where it expects something else:\n",
            *notes,
            "\n| family | outputs | as recorded |\n|---|---|---|",
            *rows,
            "",
        ]
    )


def main() -> int:
    every = cases()
    if not every:
        print(f"no corpus at {CORPUS}: set TREADLE_CORPUS")  # noqa: T201 - a script
        return 1
    text = page(every)
    PAGE.parent.mkdir(exist_ok=True)
    Path(PAGE).write_text(text)
    print(text)  # noqa: T201 - a script
    return 1 if "| BROKEN |" in text else 0


if __name__ == "__main__":
    raise SystemExit(main())
