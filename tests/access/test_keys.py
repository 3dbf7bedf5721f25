from __future__ import annotations

import hmac
import secrets
from typing import Any

import pytest
from msgspec.structs import replace

from access import keys
from access.caller import Caller, caller_of
from access.keys import Key
from access.surface import scope_for
from turns.errors import ForbiddenError

SECRET = secrets.token_urlsafe(32)
KEY = Key(id="0123456789ab", digest=keys.digest(SECRET), tenant="acme")


def test_a_key_is_read_as_it_is_spelled() -> None:
    for _ in range(50):  # a secret may hold the separator
        key_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        assert keys.read(keys.spell(key_id, secret)) == (key_id, secret)


@pytest.mark.parametrize(
    "shown",
    [
        "",
        "none",
        "sk-ant-1",
        "treadle-0123456789ab-",
        pytest.param(f"treadle-0123456789AB-{SECRET}", id="upper-case"),
        "\ud800",
    ],
)
def test_what_is_no_key_of_ours_is_none(shown: str) -> None:
    assert keys.read(shown) is None


@pytest.mark.parametrize(
    ("key", "secret", "good"),
    [
        pytest.param(KEY, SECRET, True, id="good"),
        pytest.param(KEY, SECRET[:-1] + "!", False, id="wrong"),
        pytest.param(KEY, "", False, id="empty"),
        pytest.param(None, SECRET, False, id="no such id"),
        pytest.param(None, "", False, id="nobody's digest is nobody's"),
        pytest.param(replace(KEY, revoked=1.0), SECRET, False, id="revoked"),
        pytest.param(replace(KEY, expires=100.0), SECRET, False, id="out of date"),
        pytest.param(replace(KEY, expires=100.5), SECRET, True, id="not yet"),
    ],
)
def test_a_key_is_good_or_not(key: Key | None, secret: str, good: bool) -> None:
    assert keys.good(key, secret, now=100.0) is good


@pytest.mark.parametrize("key", [KEY, None])
def test_every_secret_is_compared_whole_and_in_constant_time(
    key: Key | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the id is nobody's: how long an answer takes does not say which ids there are."""
    compared: list[tuple[bytes, bytes]] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return one == other

    monkeypatch.setattr(hmac, "compare_digest", compare)
    keys.good(key, "wrong", now=0.0)
    assert [(len(one), len(other)) for one, other in compared] == [(32, 32)]


def test_tenants_share_nothing_unless_they_may() -> None:
    one, other = (caller_of(replace(KEY, tenant=t), share=False) for t in ("acme", "umbrella"))
    assert one.owner != other.owner
    assert one.salt != other.salt
    assert one.salt
    again = caller_of(replace(KEY, id="ffffffffffff"), share=False)
    assert (again.owner, again.salt) == (one.owner, one.salt)  # a new key of the same tenant
    assert caller_of(KEY, share=True).salt == ""


@pytest.mark.parametrize(
    ("models", "names", "may"),
    [
        ((), ("any",), True),
        (("qwen*",), ("qwen3",), True),
        (("qwen*",), ("claude-haiku", "qwen3"), True),
        (("qwen*",), ("Qwen3",), False),
        (("a", "b"), ("c",), False),
    ],
)
def test_models_are_names_or_patterns(models: Any, names: Any, may: bool) -> None:
    assert Caller(models=models).may_use(names) is may


def test_what_a_key_does_not_allow_is_said() -> None:
    caller = caller_of(replace(KEY, models=("small",)), share=False)
    with pytest.raises(ForbiddenError, match="the scope 'console'"):
        caller.need("console")
    with pytest.raises(ForbiddenError, match="'large'; it allows small"):
        caller.need_model("large", "large")
    caller.need("turns")
    caller.need_model("alias", "small")


@pytest.mark.parametrize(
    ("path", "scope"),
    [
        ("/", None),
        ("/health", None),
        ("/healthy", "turns"),
        ("/metrics", "metrics"),
        ("/console", None),
        ("/console/app.js", None),
        ("/console/api", "console"),
        ("/console/api/sessions", "console"),
        ("/consolé", "turns"),
        ("/v1/treadle/admin", "admin"),
        ("/v1/treadle/admin/keys", "admin"),
        ("/v1/treadle/turns/x/prefix", "turns"),
        ("/v1/messages", "turns"),
        ("/openapi.json", "turns"),
        ("", "turns"),
    ],
)
def test_a_path_says_what_it_needs(path: str, scope: str | None) -> None:
    assert scope_for(path) == scope
