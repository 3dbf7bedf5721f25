"""What a cluster's YAML may say about tools, and that a cluster without them needs none of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pydantic
import pytest
import yaml

from access import keys
from access.keys import Key
from deployments.settings import AccessSettings
from deployments.tool_settings import ToolSettings

ROOT = Path(__file__).resolve().parents[2]
TOOL = {"name": "shop", "source": {"kind": "sqlite", "path": "${CHECKOUT}/shop.sqlite"}}


def settings(**more) -> ToolSettings:
    return ToolSettings.model_validate({"tools": [TOOL]} | more)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param({"tools": []}, "at least 1", id="no tools"),
        pytest.param({"tool": [TOOL]}, "tool\n", id="misspelt"),
        pytest.param({"replicas": 2}, "need `book`", id="replicas that share nothing"),
        pytest.param({"replicas": 2, "book": "redis://r"}, "`folder`", id="rows that lie apart"),
        pytest.param({"drain_s": 0}, "greater than 0", id="no time to drain"),
    ],
)
def test_bad_settings_are_refused_by_name(given, said):
    with pytest.raises(pydantic.ValidationError, match=said):
        settings(**given)


def test_replicas_that_share_book_and_folder_are_fine():
    assert settings(replicas=2, book="redis://r", folder="/shared").replicas == 2


def test_declared_tools_know_the_checkout():
    gateway = pytest.importorskip("deployments.tool_gateway", reason="the extra `tools` is missing")
    (tool,) = gateway.declared(settings())
    assert tool.name == "shop"
    assert tool.schema()["required"] == ["sql"]


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        pytest.param(TOOL | {"nmae": "x"}, "nmae", id="unknown field"),
        pytest.param(TOOL | {"name": "stream_rows"}, "stream_rows", id="reserved name"),
        pytest.param({"name": "x", "source": {"kind": "cobol"}}, "cobol", id="unknown source"),
        pytest.param(
            {"name": "x", "source": {"kind": "sqlite", "path": "${NOT_SET_HERE}"}},
            "NOT_SET_HERE",
            id="unset name",
        ),
    ],
)
def test_bad_declarations_are_refused_before_anything_starts(tool, said):
    gateway = pytest.importorskip("deployments.tool_gateway", reason="the extra `tools` is missing")
    with pytest.raises(ValueError, match=said):
        gateway.declared(settings(tools=[tool]))


def test_the_shipped_cluster_can_be_declared():
    gateway = pytest.importorskip("deployments.tool_gateway", reason="the extra `tools` is missing")
    config = yaml.safe_load((ROOT / "clusters" / "tools.yaml").read_text())
    apps = {app["name"]: app for app in config["applications"]}
    assert apps["tools"]["route_prefix"] == "/mcp"
    assert gateway.declared(ToolSettings.model_validate(apps["tools"]["args"]))


KEY = Key(id="0" * 12, digest=keys.digest("s" * 43), tenant="acme")


async def through(gate, headers):
    """Whom the gateway behind a gate takes a caller for; the status where it is not reached."""
    gateway = pytest.importorskip("deployments.tool_gateway", reason="the extra `tools` is missing")
    found = []

    async def behind(scope, _receive, _send):
        named = {name.decode(): value.decode() for name, value in scope["headers"]}
        assert not named.keys() & {"authorization", "x-api-key"}
        found.append(gateway.principal(named))

    async def send(message):
        if message["type"] == "http.response.start":
            found.append(message["status"])

    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "path": "/mcp", "root_path": "/mcp", "method": "POST", "headers": raw}

    async def look_up(key_id):
        return KEY if key_id == KEY.id else None

    await gateway.guarded(behind, gate, look_up)(scope, None, send)
    return found[0]


async def test_everyone_without_a_key_is_one_caller_and_every_key_another():
    callers = (
        {},
        {"x-treadle-principal": "somebody-else"},
        {"authorization": "Bearer alice"},
        {"x-api-key": "alice"},
        {"authorization": "Bearer bob"},
    )
    nobody, liar, alice, same, bob = [await through(AccessSettings(), one) for one in callers]
    assert nobody == liar
    assert alice == same
    assert len({nobody, alice, bob}) == 3


async def test_where_keys_are_asked_for_a_tenant_is_the_caller(monkeypatch):
    monkeypatch.setenv("TREADLE_ADMIN_KEY", "x" * 20)
    access = AccessSettings(keys="required")
    shown = keys.spell(KEY.id, "s" * 43)
    assert await through(access, {"authorization": f"Bearer {shown}"}) == keys.owner_of("acme")
    assert await through(access, {"x-treadle-principal": keys.owner_of("acme")}) == 401
    assert await through(access, {"x-api-key": shown[:-1] + "t"}) == 401


WITHOUT = """
import sys
for name in ("mcp", "mcp_types", "duckdb", "datasketches"):
    sys.modules[name] = None
import deployments.app, deployments.tools
from deployments.tool_settings import ToolSettings
settings = ToolSettings(tools=({"name": "shop", "source": {}},))
try:
    deployments.tools.build(settings)
except ValueError as error:
    print(error)
"""


def test_a_cluster_without_the_extra_imports_and_says_what_is_missing():
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WITHOUT],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert "need the extra `tools`" in run.stdout, run.stderr[-2000:]
