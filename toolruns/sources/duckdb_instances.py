"""DuckDB instances that stay up between calls, each for one database file and nothing else.

To start an instance takes some 20 ms, most of what a stopped query costs. The file itself is
attached only while a call reads it, so that others may write or replace it between calls.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path

import duckdb

KEPT = 8
"""Idle instances that stay up; the one that was idle for longest goes first."""
OWN_NAMES = frozenset({"main", "memory", "system", "temp"})
"""Names that DuckDB keeps for databases of its own."""


class Instance:
    """One instance. `connect` and `leave` pair up; the file is attached while any call is in."""

    def __init__(self, path: Path, memory: str, threads: int) -> None:
        self.calls = 0
        self._file = _quoted(str(path))
        self._name = _named(f"{path.stem}_" if path.stem.lower() in OWN_NAMES else path.stem)
        self._lock = threading.Lock()
        self._inside = 0
        self._root = duckdb.connect(
            ":memory:",
            config={
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
                "memory_limit": memory,
                "threads": threads,
                # It would read all rows of a LIMIT before it gives the first.
                "disabled_optimizers": "late_materialization",
            },
        )
        self._root.execute(f"SET allowed_paths = [{self._file}, {_quoted(f'{path}.wal')}]")
        self._root.execute("SET enable_external_access = false")
        self._root.execute("SET lock_configuration = true")

    def connect(self) -> duckdb.DuckDBPyConnection:
        """A connection whose tables are those of the file. Raises duckdb.Error."""
        with self._lock:
            self._root.execute(f"ATTACH IF NOT EXISTS {self._file} AS {self._name} (READ_ONLY)")
            self._inside += 1
        connection = self._root.cursor()
        try:
            connection.execute(f"USE {self._name}")
        except duckdb.Error:
            self.leave(connection)
            raise
        return connection

    def leave(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Close one of these connections; the last lets the file go."""
        connection.close()
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._root.execute(f"DETACH {self._name}")

    def close(self) -> None:
        self._root.close()


class Instances:
    """The instances of this process, for any thread. `take` and `give` pair up."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[Path, str, int], Instance] = OrderedDict()

    def take(self, path: Path, memory: str, threads: int) -> Instance:
        """The instance for a file, started if there is none."""
        key = (path.absolute(), memory, threads)
        with self._lock:
            found = self._known.get(key)
            if found is None:
                found = self._known[key] = Instance(*key)
            self._known.move_to_end(key)
            found.calls += 1
        return found

    def give(self, instance: Instance) -> None:
        """A call is done with it. Those that were idle for longest are closed beyond `kept`."""
        with self._lock:
            instance.calls -= 1
            idle = [key for key, known in self._known.items() if not known.calls]
            for key in idle[: max(0, len(idle) - self._kept)]:
                self._known.pop(key).close()


SHARED = Instances()


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _named(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
