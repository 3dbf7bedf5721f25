"""The JSON arguments of a call whose name a header has given. Shared by the syntaxes that do so."""

from __future__ import annotations

from parsers.grammar import Go, On, State, States


def json_body(name: str, *, then: str, otherwise: str, ends: tuple[str, ...] = ()) -> States:
    """The states `name` and `name_json`.

    A call without arguments has one of `ends` where they would begin, or the end of the output;
    anything else there is no body, and leads to `otherwise` with the call still open.
    """
    none: On = tuple((mark, Go(then, do=("end_call",), keep=True)) for mark in ends)
    return (
        (
            name,
            State(
                "space",
                on=(("{", Go(f"{name}_json", keep=True)), *none),
                otherwise=otherwise,
                at_end=("end_call",),
            ),
        ),
        (
            f"{name}_json",
            State("reader", reader="json_arguments", then=then, otherwise=otherwise, ends=ends),
        ),
    )
