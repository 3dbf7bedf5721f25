from __future__ import annotations

import time

import pytest

from toolruns.predicate.lexer import MAX_CHARS
from toolruns.predicate.parse import MAX_DEPTH, MAX_TERMS, parse
from toolruns.predicate.syntax import (
    Aggregate,
    Both,
    Compare,
    Constant,
    Either,
    PredicateError,
    Scalar,
    Seen,
    Verdict,
)


def test_the_essays_example():
    assert parse("count >= 30 AND distinct_user_ids >= 10").root == Both(
        (
            Compare(">=", Scalar("count", 0), Constant(30.0, 9), 0),
            Compare(
                ">=", Aggregate("distinct", "user_ids", 25, plural=True), Constant(10.0, 37), 16
            ),
        )
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("count >= 30 and seconds < 5", "COUNT >= 30 AND SECONDS < 5", id="case"),
        pytest.param("count>1 && !(count>9)", "count>1 and not count>9", id="symbols"),
        pytest.param("count == 3", "count = 3", id="equals"),
        pytest.param("count <> 3", "count != 3", id="unequal"),
        pytest.param("bytes > 2kb", "bytes > 2048", id="kilobytes"),
        pytest.param("seconds > 1m", "seconds > 60", id="minutes"),
        pytest.param("seconds > 1.5h", "seconds > 5400", id="hours"),
        pytest.param("null_rate(a) > 5%", "null_rate(a) > 0.05", id="percent"),
        pytest.param("count > 10k", "count > 10_000", id="thousands"),
        pytest.param("count > 1e3", "count > 1000", id="exponent"),
        pytest.param("NOT (count > 1 AND count < 5)", "count <= 1 OR count >= 5", id="de-morgan"),
        pytest.param("NOT NOT count = 3", "count = 3", id="twice-not"),
        pytest.param("count(*) > 3", "count > 3", id="star"),
        pytest.param("((count)) > 3", "count > 3", id="brackets"),
    ],
)
def test_spellings_mean_the_same(one, other):
    assert _shape(parse(one).root) == _shape(parse(other).root)


def _shape(node):
    """The tree without places in the text."""
    if isinstance(node, tuple):
        return tuple(_shape(item) for item in node)
    fields = getattr(node, "__struct_fields__", None)
    if fields is None:
        return node
    inner = tuple(_shape(getattr(node, name)) for name in fields if name != "at")
    return (type(node).__name__, *inner)


def test_or_binds_looser_than_and():
    root = parse("count > 1 OR count > 2 AND count > 3").root
    assert isinstance(root, Either)
    assert isinstance(root.items[1], Both)


def test_arithmetic_binds_tighter_than_comparison():
    root = parse("count_if(a > 1) / count > 1 - 0.5 * 1").root
    assert isinstance(root, Compare)


def test_keywords_may_be_column_names_when_quoted():
    root = parse("any(\"and\" = 'or')").root
    assert isinstance(root, Seen)
    assert root.condition.left.column == "and"


def test_doubled_quotes_stand_for_one():
    assert parse("any(name = 'O''Hara')").root.condition.right.value == "O'Hara"


def test_verdicts():
    assert parse("converged").root == Verdict("converged", "", 0, negated=False, at=0)
    assert parse("converged(a)").root.column == "a"
    assert parse("NOT top_k_stable(3)").root == Verdict("top_k_stable", "", 3, negated=True, at=4)


@pytest.mark.parametrize(
    ("text", "clocked"), [("count > 1", False), ("idle > 1 OR count > 1", True)]
)
def test_clocked_says_whether_time_alone_can_satisfy(text, clocked):
    assert parse(text).clocked is clocked


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        pytest.param("", 1, "empty", id="empty"),
        pytest.param("   ", 1, "empty", id="blank"),
        pytest.param("count", 6, "expected a comparison", id="no-comparison"),
        pytest.param("count >= ", 10, "cut short", id="cut"),
        pytest.param("count >= 3 3", 12, "unexpected '3'", id="rest"),
        pytest.param("cuont >= 3", 1, "did you mean 'count'", id="typo"),
        pytest.param("status = 'x'", 1, "write any(status", id="column-outside-any"),
        pytest.param("count(x) > 3", 7, "count takes no column", id="count-column"),
        pytest.param("median(x) > 3", 1, "unknown function 'median'", id="function"),
        pytest.param("distinct() > 3", 10, "expected a column", id="no-column"),
        pytest.param("distinct(a, b) > 3", 11, "expected ')'", id="two-columns"),
        pytest.param("count >= 1x", 11, "unknown unit 'x'", id="unit"),
        pytest.param("count >= 1.2.3", 10, "not a number", id="number"),
        pytest.param("any(name = 'x", 12, "never closed", id="quote"),
        pytest.param("count > 3 AND (count > 5", 25, "expected ')'", id="bracket"),
        pytest.param("(count > 3) > 2", 13, "unexpected '>'", id="comparison-of-conditions"),
        pytest.param("count BETWEEN 1", 16, "expected AND", id="between"),
        pytest.param("count NOT > 3", 11, "expected BETWEEN, IN or LIKE", id="not-alone"),
        pytest.param("count > 3;", 10, "unexpected character ';'", id="semicolon"),
        pytest.param("any(x IS 3)", 10, "expected NULL", id="is"),
        pytest.param("any(x LIKE 3)", 13, "LIKE takes", id="like-number"),
        pytest.param("top_k_stable(0)", 1, "number of chunks", id="top-k"),
    ],
)
def test_errors_point_at_the_column(text, column, message):
    with pytest.raises(
        PredicateError, match=message.replace("(", r"\(").replace(")", r"\)")
    ) as error:
        parse(text)
    assert error.value.column == column
    assert f"column {column}\n" in str(error.value)


ATTACKS = [
    pytest.param("(" * 1000, id="deep-brackets"),
    pytest.param("NOT " * 200 + "count = 1", id="deep-not"),
    pytest.param("-" * 500 + "1 < count", id="deep-minus"),
    pytest.param("any(" * 200, id="deep-any"),
    pytest.param("(" * (MAX_DEPTH - 1) + "count + 1" + ")" * (MAX_DEPTH - 1), id="backtracking"),
    pytest.param("count = 1 OR " * 78 + "count=1", id="many-terms"),
    pytest.param("count = " + "9" * 2000, id="long-number"),
    pytest.param("any(a LIKE '" + "%a" * 600 + "')", id="long-pattern"),
    pytest.param("count > 1 " * 20_000, id="twenty-thousand-terms"),
    pytest.param("__import__('os').system('true')", id="python"),
    pytest.param("count > (SELECT 1)", id="subselect"),
    pytest.param("count > 1; DROP TABLE rows", id="two-statements"),
    pytest.param("count > 9**9**9", id="power"),
    pytest.param("count > 0x10", id="hex"),
    pytest.param("count > \x00", id="nul"),
    pytest.param("count > ${HOME}", id="shell"),
    pytest.param("matches(a, '(a+)+$')", id="regex"),
    pytest.param("any(any(a = 1))", id="nested-any"),
    pytest.param("count_if(count > 1) > 1 AND any(distinct(a) > 1)", id="aggregate-in-row"),
    pytest.param("count > '\N{RIGHT-TO-LEFT OVERRIDE}", id="bidi"),
    pytest.param("count > \N{ARABIC-INDIC DIGIT THREE}", id="other-digits"),
]


@pytest.mark.parametrize("text", ATTACKS)
def test_attacks_are_refused_at_once(text):
    began = time.process_time()
    with pytest.raises(PredicateError):
        parse(text)
    assert time.process_time() - began < 1.0  # a bound of sanity: exponential work would exceed it


def test_limits_are_exact():
    parse("count = 1".ljust(MAX_CHARS))
    with pytest.raises(PredicateError, match="longer than"):
        parse("count = 1".ljust(MAX_CHARS + 1))
    parse(" OR ".join(["count = 1"] * (MAX_TERMS // 2)))
    with pytest.raises(PredicateError, match="terms"):
        parse(" OR ".join(["count = 1"] * (MAX_TERMS // 2 + 1)))
    parse("(" * (MAX_DEPTH - 1) + "count = 1" + ")" * (MAX_DEPTH - 1))
    with pytest.raises(PredicateError, match="deeper"):
        parse("(" * MAX_DEPTH + "count = 1" + ")" * MAX_DEPTH)
