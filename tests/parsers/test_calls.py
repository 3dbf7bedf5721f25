"""Calls that models really write: whole, slipped and broken."""

from __future__ import annotations

import pytest

from tests.parsers.outputs import grammar, parse, plain
from tests.parsers.test_machine import CLOCK, said
from turns.reply import fold

FUNCTION = "<tool_call>\n<function=save_file>\n{}\n</function>\n</tool_call>"


def words(name: str, output: str) -> list[str]:
    whole = fold(parse(grammar(name), plain([output])))
    assert fold(parse(grammar(name), plain(list(output)))).blocks == whole.blocks
    return said(whole.blocks)


def tagged(body: str) -> str:
    return f"<tool_call>\n{body}\n</tool_call>"


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        pytest.param(tagged('{"name": "clock", "arguments": null}'), ["clock {}"], id="null"),
        pytest.param(tagged('{"name": "clock", "arguments": ""}'), ["clock {}"], id="empty-string"),
        pytest.param(tagged('{"type": "function", "function": {"name": "clock", "arguments": {}}}'), ["clock {}"], id="nested"),
        pytest.param(tagged('[{"name": "clock"}, {"name": "clock"}]'), ["clock {}"] * 2, id="list"),
        pytest.param(tagged('{"name": "clock"}\n{"name": "clock"}'), ["clock {}"] * 2, id="two-in-one"),
        pytest.param(tagged('{"name": "clock", "arguments": {}}}'), ["clock {}"], id="brace-too-many"),
        pytest.param(tagged('{"name": "save_file", "arguments": {"path": "a"}'), ['save_file {"path": "a"}'], id="brace-missing"),
        pytest.param(tagged('{"name": "nobody", "arguments": {}}'), ["nobody {}"], id="unknown-tool"),
        pytest.param(tagged('{"name": "save_file", "arguments": {"path": "a\nb"}}'), ['save_file {"path": "a\\nb"}'], id="raw-newline"),
        pytest.param(tagged('{"name": "save_file", "arguments": {"mode": 12345678901234567890123, "x": 1.10}}'),
                     ['save_file {"mode": 12345678901234567890123, "x": 1.10}'], id="numbers-verbatim"),
        pytest.param(tagged('{"name": "save_file", "arguments": "{\\"path\\": \\"\\\\ud83d\\\\ude00\\"}"}'),
                     ['save_file {"path": "\\ud83d\\ude00"}'], id="wrapped-escapes"),
        pytest.param(CLOCK + "</tool_call></tool_call> bye", ["clock {}", "text bye"], id="closer-twice"),
        pytest.param(CLOCK + CLOCK, ["clock {}"] * 2, id="nothing-between"),
        pytest.param("Use <tool_call> and </tool_call>.", ["text Use <tool_call> and </tool_call>."], id="prose"),
        pytest.param(tagged("not json"), ["text <tool_call>\nnot json\n</tool_call>"], id="no-json"),
        pytest.param(tagged('{"no": 1}') + "ok", ['text {"no": 1}', "text ok"], id="no-name"),
        pytest.param(tagged('{"name": "save_file", "arguments": [1]}') + CLOCK, ["cut malformed save_file ", "clock {}"], id="array"),
        pytest.param(tagged('{"name": "save_file", "arguments": {"a": True}}') + CLOCK,
                     ['cut malformed save_file {"a": ', "clock {}"], id="python-in-json"),
        pytest.param(tagged('{"name": "save_file", "arguments": {"a": "x}}') + CLOCK,
                     ['cut malformed save_file {"a": "x}}', "clock {}"], id="string-never-closed"),
        pytest.param(tagged('{"name": "save_file", "arguments": {"a": [1}}') + CLOCK,
                     ['cut malformed save_file {"a": [1', "clock {}"], id="bracket-mismatch"),
    ],
)  # fmt: skip
def test_json_in_tags(output: str, expected: list[str]) -> None:
    assert words("hermes", output) == expected


def parameter(key: str, value: str) -> str:
    return FUNCTION.format(f"<parameter={key}>\n{value}\n</parameter>")


@pytest.mark.parametrize(
    ("key", "value", "json"),
    [
        pytest.param("body", "    a &lt; b\n\n", '"    a &lt; b\\n\\n"', id="verbatim"),
        pytest.param("body", "", '""', id="empty"),
        pytest.param("body", "null", '"null"', id="null-in-a-string"),
        pytest.param("body", "12", '"12"', id="number-in-a-string"),
        pytest.param("body", 'say "</parameter>" loud', '"say \\"</parameter>\\" loud"', id="closer-in-a-line"),
        pytest.param("body", "<a>\n</parameter>\n</a>", '"<a>\\n</parameter>\\n</a>"', id="closer-on-a-line"),
        pytest.param("body", "</function>", '"</function>"', id="other-closer"),
        pytest.param("label", "null", "null", id="nullable-null"),
        pytest.param("label", "nullish", '"nullish"', id="nullable-string"),
        pytest.param("label", "0" * 100, '"' + "0" * 100 + '"', id="nullable-digits"),
        pytest.param("mode", "12", "12", id="integer"),
        pytest.param("mode", "012", '"012"', id="no-integer"),
        pytest.param("mode", "a few", '"a few"', id="no-number"),
        pytest.param("mode", "9" * 60, "9" * 60, id="big-integer"),
        pytest.param("force", "True", "true", id="python-word"),
        pytest.param("force", "yes", '"yes"', id="no-boolean"),
        pytest.param("tags", "['a', \"b\"]", '["a", "b"]', id="python-list"),
        pytest.param("tags", '["a",  "b"]', '["a",  "b"]', id="json-verbatim"),
        pytest.param("tags", "[a, b]", '"[a, b]"', id="no-list"),
        pytest.param("tags", '"[\\"a\\"]"', '["a"]', id="written-twice"),
        pytest.param("owner", "{'a': None}", '{"a": null}', id="python-dict"),
        pytest.param("owner", "[1]", '"[1]"', id="list-for-an-object"),
        pytest.param("more", "true", '"true"', id="undeclared"),
    ],
)  # fmt: skip
def test_a_value_by_its_schema(key: str, value: str, json: str) -> None:
    assert words("qwen3_coder", parameter(key, value)) == [f'save_file {{"{key}": {json}}}']


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        pytest.param("<parameter=path>a</parameter>", ['save_file {"path": "a"}'], id="one-line"),
        pytest.param("<parameter=path>\na\n<parameter=mode>\n1\n</parameter>", ['save_file {"path": "a", "mode": 1}'], id="closer-forgotten"),
        pytest.param("<parameter=path>\na\n<parameter=zip>\n1\n</parameter>", ['save_file {"path": "a\\n<parameter=zip>\\n1"}'], id="undeclared-key-is-data"),
        pytest.param("<parameter=path>\na", ['save_file {"path": "a"}'], id="last-closer-forgotten"),
        pytest.param("<parameter=path>\na\n</parameter>\n<parameter=\nb\n</parameter>", ['save_file {"path": "a"}'], id="key-broken"),
        pytest.param("noise <parameter=path>\na\n</parameter> noise", ['save_file {"path": "a\\n</parameter> noise"}'], id="noise-behind"),
        pytest.param("", ["save_file {}"], id="nothing"),
    ],
)  # fmt: skip
def test_parameters(inner: str, expected: list[str]) -> None:
    assert words("qwen3_coder", FUNCTION.format(inner)) == expected


BARE = "<function=save_file>\n<parameter=path>\na\n</parameter>\n</function>"


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        pytest.param(f"ok\n\n{BARE}", ["text ok", 'save_file {"path": "a"}'], id="no-wrapper"),
        pytest.param(f"{BARE}\n</tool_call> bye", ['save_file {"path": "a"}', "text bye"], id="orphan-closer"),
        pytest.param(BARE.replace("save_file", "nobody"), ["text " + BARE.replace("save_file", "nobody")], id="of-nobody"),
        pytest.param("call <function=save_file> so", ["text call <function=save_file> so"], id="prose"),
        pytest.param(f"<tool_call>\n{BARE}\n{BARE}\n</tool_call>", ['save_file {"path": "a"}'] * 2, id="two-in-one"),
        pytest.param(f"<tool_call>\n{BARE}bye", ['save_file {"path": "a"}', "text bye"], id="wrapper-open"),
    ],
)  # fmt: skip
def test_a_function_and_its_wrapper(output: str, expected: list[str]) -> None:
    assert words("qwen3_coder", output) == expected


def test_a_long_array_streams_and_stays_typed() -> None:
    items = ", ".join(f'{{"n": {n}, "done": False}}' for n in range(60))
    output = parameter("tags", f"[{items}]")
    events = parse(grammar("qwen3_coder"), plain(list(output)))
    sizes = [len(event.json) for event in events if hasattr(event, "json")]
    assert max(sizes) < 300
    assert said(fold(events).blocks) == [
        f'save_file {{"tags": [{items.replace("False", "false")}]}}'
    ]


def test_a_long_array_that_breaks_cuts_only_its_call() -> None:
    output = parameter("tags", "[" + "1, " * 200 + "oops]") + "\n" + parameter("mode", "1")
    cut, whole = words("qwen3_coder", output)
    assert cut.startswith("cut malformed save_file")
    assert whole == 'save_file {"mode": 1}'
