"""Real harnesses stop a scan of TPC-H through /mcp, look into its rows, and answer from them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.served import ROOT, served
from scripts import tpch
from tests.harness import clis
from tests.harness.judged import judged

duckdb = pytest.importorskip("duckdb", reason="the extra `tools` is not installed")
pytestmark = [pytest.mark.harness, pytest.mark.timeout(400)]
PROMPT = "What is the largest return among the first line items? Look at few of them."
LARGEST = """
SELECT l_orderkey, l_quantity FROM (SELECT * FROM lineitem LIMIT 32)
WHERE l_returnflag = 'R' ORDER BY l_quantity DESC LIMIT 1
"""


@pytest.fixture(scope="module")
def database():
    for name in clis.WITH_DATA:
        clis.program(name)  # skips before anything is made or started
    return tpch.make()


@pytest.fixture(scope="module")
def server(database: Path):
    assert database.exists()
    with served(ROOT / "clusters" / "tools.yaml", ["/health"]) as running:
        running.wait_for_route("/mcp")
        yield running


def strings(said: str) -> list[str]:
    """Every text in the CLI's JSON lines."""
    found: list[str] = []

    def walk(value):
        match value:
            case str():
                found.append(value)
            case dict():
                for one in value.values():
                    walk(one)
            case list():
                for one in value:
                    walk(one)

    for line in said.splitlines():
        if line.startswith("{"):
            walk(json.loads(line))
    return found


@pytest.mark.parametrize("name", list(clis.WITH_DATA))
async def test_harness_stops_a_stream_and_looks_into_its_rows(
    server, database: Path, name, tmp_path
):
    async with judged(server.url("")) as url:
        asked = clis.WITH_DATA[name](url, tmp_path, PROMPT)
        said = strings(await clis.run(name, tmp_path, asked))
    stopped = "PARTIAL (predicate_satisfied) after 32 rows; source has more."
    assert any(text.startswith(stopped) or f"\n{stopped}" in text for text in said)
    answer = next((text for text in said if "FINAL-OK" in text), "")
    assert "Of the first 32 rows only" in answer
    with duckdb.connect(str(database), read_only=True) as found:
        key, quantity = found.execute(LARGEST).fetchone()
    assert f'"l_orderkey":{key}' in answer
    assert f'"l_quantity":"{quantity}"' in answer
