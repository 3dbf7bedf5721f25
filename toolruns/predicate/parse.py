"""From words to a tree, by recursive descent with a bound on terms and depth.

condition := all (OR all)*        all := one (AND one)*        one := NOT one | test
test      := value [cmp value | [NOT] BETWEEN v AND v | [NOT] IN (lit, …)] | (condition)
value     := factor (+|- factor)*     factor := unit (*|/ unit)*
unit      := literal | -unit | counter | fn(column) | count_if(rows)
           | distinct_<column>[s] | (value)
rows      := the same over a row's columns, plus [NOT] LIKE 'pattern' and IS [NOT] NULL
"""

from __future__ import annotations

import difflib

from toolruns.predicate.lexer import Token, tokens
from toolruns.predicate.syntax import (
    CLOCKED,
    COLUMN_FUNCTIONS,
    ROW_COUNTS,
    ROW_FUNCTIONS,
    STREAM_SCALARS,
    VERDICTS,
    Aggregate,
    Arithmetic,
    Both,
    Compare,
    Condition,
    Constant,
    Either,
    IsNull,
    Like,
    Member,
    Op,
    Predicate,
    PredicateError,
    Reference,
    RowAggregate,
    Scalar,
    Seen,
    Sign,
    Truth,
    Value,
    Verdict,
    negate,
    values,
)

MAX_TERMS = 64
MAX_DEPTH = 12

COMPARISONS: dict[str, Op] = {
    "=": "=",
    "==": "=",
    "!=": "!=",
    "<>": "!=",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
}
SIGNS: dict[str, Sign] = {"+": "+", "-": "-", "*": "*", "/": "/"}
WORDS = (*ROW_COUNTS, *STREAM_SCALARS, *COLUMN_FUNCTIONS, *ROW_FUNCTIONS, *VERDICTS)


def parse(text: str) -> Predicate:
    """The predicate of `text`. Raises PredicateError, which points at the column."""
    if not text.strip():
        message = "empty"
        raise PredicateError(message, text, 0, "e.g. count >= 30 AND distinct(user_id) >= 10")
    parser = _Parser(text)
    root = parser.condition()
    parser.expect_end()
    names = {value.name for value in values(root) if isinstance(value, Scalar)}
    return Predicate(text, root, clocked=not names.isdisjoint(CLOCKED))


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokens(text)
        self._next = 0
        self._terms = 0
        self._depth = 0
        self._in_row = False

    def condition(self) -> Condition:
        self._enter()
        items = [self._all()]
        while self._word("OR", "||"):
            items.append(self._all())
        self._depth -= 1
        return items[0] if len(items) == 1 else Either(tuple(items))

    def expect_end(self) -> None:
        if self._peek.kind != "end":
            raise self._error(f"unexpected {self._peek.text!r}", self._peek)

    def _all(self) -> Condition:
        items = [self._one()]
        while self._word("AND", "&&"):
            items.append(self._one())
        return items[0] if len(items) == 1 else Both(tuple(items))

    def _one(self) -> Condition:
        if self._word("NOT", "!"):
            self._enter()
            inner = self._one()
            self._depth -= 1
            return negate(inner)
        if self._peek.text == "(" and self._peek.kind == "symbol":
            return self._grouped()
        return self._test()

    def _grouped(self) -> Condition:
        """`(` opens a condition or a value; only what follows tells: try one, then the other."""
        start, terms, depth = self._next, self._terms, self._depth
        self._take()
        try:
            inner = self.condition()
            self._symbol(")")
        except PredicateError as error:
            self._next, self._terms, self._depth = start, terms, depth
            if not self._holds_value():
                raise error from None
            return self._test()
        return inner

    def _holds_value(self) -> bool:
        """Whether what stands behind the matching `)` makes this a value: `(a + b) * c > 1`."""
        level = 0
        for token in self._tokens[self._next :]:
            if token.kind == "symbol" and token.text == "(":
                level += 1
            elif token.kind == "symbol" and token.text == ")":
                level -= 1
            elif level == 0:
                behind = token.text.upper()
                return behind in COMPARISONS or behind in SIGNS or behind in {"BETWEEN", "IN"}
        return False

    def _test(self) -> Condition:
        at = self._peek.at
        verdict = self._verdict()
        if verdict is not None:
            return verdict
        left = self._value()
        op = COMPARISONS.get(self._peek.text) if self._peek.kind == "symbol" else None
        if op:
            self._take()
            return Compare(op, left, self._value(), at)
        negated = self._word("NOT")
        found = self._tail(left, at)
        if found is not None:
            return negate(found) if negated else found
        if negated:
            raise self._error("expected BETWEEN, IN or LIKE after NOT", self._peek)
        if isinstance(left, Reference) or (
            isinstance(left, Constant) and isinstance(left.value, bool)
        ):
            return Truth(left, negated=False, at=at)
        raise self._error("expected a comparison", self._peek, "e.g. count >= 30")

    def _tail(self, left: Value, at: int) -> Condition | None:
        if self._word("BETWEEN"):
            low = self._value()
            if not self._word("AND"):
                raise self._error("expected AND", self._peek)
            return Both((Compare(">=", left, low, at), Compare("<=", left, self._value(), at)))
        if self._word("IN"):
            self._symbol("(")
            items = [self._literal()]
            while self._peek.text == ",":
                self._take()
                items.append(self._literal())
            self._symbol(")")
            return Member(left, tuple(items), negated=False, at=at)
        if self._in_row and self._word("LIKE"):
            pattern = self._literal()
            if not isinstance(pattern.value, str):
                raise self._error("LIKE takes a 'pattern'", self._peek)
            return Like(left, str(pattern.value), negated=False, at=at)
        if self._in_row and self._word("IS"):
            negated = self._word("NOT")
            if not self._word("NULL"):
                raise self._error("expected NULL", self._peek)
            return IsNull(left, negated, at)
        return None

    def _verdict(self) -> Condition | None:
        """What is a condition by itself: `any(…)`, `converged(column)`, `top_k_stable(n)`."""
        token = self._peek
        name = token.text.lower()
        if token.kind != "name" or token.value or self._in_row:
            return None
        if name == "any":
            self._take()
            return Seen(self._rows(), negated=False, at=token.at)
        if name not in VERDICTS:
            return None
        self._take()
        self._term()
        column, number = "", 0
        if name == "top_k_stable":
            self._symbol("(")
            count = self._literal()
            if not isinstance(count.value, float) or count.value < 1:
                raise self._error("top_k_stable takes a number of chunks", token)
            number = int(float(count.value))
            self._symbol(")")
        elif self._peek.text == "(":
            token = self._column()
            column = token.text
        return Verdict(name, column, number, negated=False, at=token.at)

    def _value(self) -> Value:
        left = self._factor()
        while self._peek.kind == "symbol" and self._peek.text in "+-":
            token = self._take()
            left = Arithmetic(SIGNS[token.text], left, self._factor(), token.at)
        return left

    def _factor(self) -> Value:
        left = self._unit()
        while self._peek.kind == "symbol" and self._peek.text in "*/":
            token = self._take()
            left = Arithmetic(SIGNS[token.text], left, self._unit(), token.at)
        return left

    def _unit(self) -> Value:
        token = self._peek
        if token.kind == "symbol" and token.text == "(":
            self._take()
            self._enter()
            inner = self._value()
            self._depth -= 1
            self._symbol(")")
            return inner
        if token.kind == "symbol" and token.text == "-":
            self._take()
            self._enter()
            inner = self._unit()
            self._depth -= 1
            return Arithmetic("-", Constant(0.0, token.at), inner, token.at)
        if token.kind in {"number", "string"} or _truth(token):
            return self._literal()
        if token.kind != "name":
            raise self._error(
                f"expected a value, found {token.text!r}" if token.text else "cut short", token
            )
        self._term()
        self._take()
        if self._in_row:
            return Reference(token.text, token.at)
        return self._named(token)

    def _named(self, token: Token) -> Value:
        name = token.text.lower()
        called = self._peek.kind == "symbol" and self._peek.text == "("
        if called and name in COLUMN_FUNCTIONS:
            column = self._column()
            return Aggregate(name, column.text, column.at)
        if called and name == "count_if":
            return RowAggregate(self._rows(), token.at)
        if called and name == "count":
            return self._counted(token)
        if not called and name in (*ROW_COUNTS, *STREAM_SCALARS):
            return Scalar(name, token.at)
        if not called and name.startswith("distinct_") and len(name) > len("distinct_"):
            skip = len("distinct_")
            return Aggregate("distinct", token.text[skip:], token.at + skip, plural=True)
        hints = difflib.get_close_matches(name, WORDS, 1)
        if hints:
            hint = f"did you mean {hints[0]!r}?"
        elif called:
            hint = f"functions: {', '.join((*COLUMN_FUNCTIONS, *ROW_FUNCTIONS, *VERDICTS))}"
        else:
            hint = f"for a condition on a row write any({token.text} = …)"
        raise self._error(f"unknown {'function' if called else 'name'} {token.text!r}", token, hint)

    def _counted(self, token: Token) -> Value:
        """`count(*)` is `count`; `count(column)` would be read as SQL, so it is refused."""
        self._take()
        if self._peek.text != "*":
            raise self._error(
                "count takes no column", self._peek, "count, distinct(column) or count_if(…)"
            )
        self._take()
        self._symbol(")")
        return Scalar("count", token.at)

    def _rows(self) -> Condition:
        self._symbol("(")
        self._in_row = True
        inner = self.condition()
        self._in_row = False
        self._symbol(")")
        return inner

    def _column(self) -> Token:
        self._symbol("(")
        token = self._take()
        if token.kind != "name":
            raise self._error("expected a column", token)
        self._symbol(")")
        return token

    def _literal(self) -> Constant:
        token = self._take()
        self._term()
        if token.kind == "number":
            return Constant(token.value, token.at)
        if token.kind == "string":
            return Constant(token.text, token.at)
        if token.text == "-" and self._peek.kind == "number":
            return Constant(-self._take().value, token.at)
        if _truth(token):
            return Constant(token.text.upper() == "TRUE", token.at)
        raise self._error("expected a number or a 'string'", token)

    @property
    def _peek(self) -> Token:
        return self._tokens[self._next]

    def _take(self) -> Token:
        token = self._tokens[self._next]
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token

    def _word(self, *spellings: str) -> bool:
        token = self._peek
        quoted = token.kind == "string" or (token.kind == "name" and token.value)
        if quoted or token.text.upper() not in spellings:
            return False
        self._take()
        return True

    def _symbol(self, text: str) -> None:
        token = self._peek
        if token.kind != "symbol" or token.text != text:
            raise self._error(f"expected {text!r}", token)
        self._take()

    def _term(self) -> None:
        self._terms += 1
        if self._terms > MAX_TERMS:
            raise self._error(f"more than {MAX_TERMS} terms", self._peek)

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._error(f"nested deeper than {MAX_DEPTH}", self._peek)

    def _error(self, message: str, token: Token, hint: str = "") -> PredicateError:
        return PredicateError(message, self._text, token.at, hint)


def _truth(token: Token) -> bool:
    return token.kind == "name" and not token.value and token.text.upper() in {"TRUE", "FALSE"}
