"""Search hits: a stream that may stop when better hits have become unlikely."""

from __future__ import annotations

import sqlite3

import pytest

from tests.toolruns.sources.play import Watching
from tests.toolruns.streams import BUDGET
from toolruns.contract import Column, Contract
from toolruns.endings import Ending
from toolruns.machine import ToolRun
from toolruns.predicate.parse import parse
from toolruns.rows.handles import new_handle
from toolruns.runner import LiveRun
from toolruns.sources.source import InThread
from toolruns.sources.sqlite_query import SqliteQuery

HITS = 900
SQL = (
    "SELECT rowid AS id, -bm25(papers) AS score FROM papers WHERE papers MATCH :words "
    "ORDER BY score DESC"
)
SCORED = Contract(
    "chunked",
    unit="hit",
    ordering="score_desc",
    columns=(Column("id", key=True), Column("score", score=True)),
)


@pytest.fixture
def index(tmp_path):
    path = tmp_path / "papers.db"
    with sqlite3.connect(path) as con:
        con.execute("CREATE VIRTUAL TABLE papers USING fts5(text)")
        con.executemany(
            "INSERT INTO papers VALUES (?)",
            (("tensor " * (40 if n < 20 else 1) + "filler " * (n % 60 + 1),) for n in range(HITS)),
        )
        con.executemany("INSERT INTO papers VALUES (?)", [("nothing here",)] * 2000)
    con.close()
    return path


async def search(index, until):
    source = Watching(InThread(SqliteQuery(index, SQL, {"words": "tensor"})))
    live = LiveRun(ToolRun(new_handle(), SCORED, BUDGET, until=parse(until)), source)
    live.start()
    outcome = await live.outcome()
    await live.ended()
    return source, outcome


async def test_the_search_stops_when_scores_have_settled(index):
    source, outcome = await search(index, "converged")
    assert outcome.ending is Ending.PREDICATE_SATISFIED
    assert source.rows < HITS / 4
    assert outcome.snapshot["verdict"] == "converged"
    best = outcome.snapshot["head"][0]["id"]
    assert best <= 20


async def test_the_search_stops_when_the_best_stay_the_best(index):
    source, outcome = await search(index, "top_k_stable(2)")
    assert outcome.ending is Ending.PREDICATE_SATISFIED
    assert outcome.snapshot["chunks"] == 3
    assert source.closed == 1
