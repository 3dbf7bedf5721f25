"""TPC-H as a DuckDB file, for `clusters/tools.yaml`: `tpch.py [PATH [SCALE]]`, made once.

Needs the extra `tools` and the test group's `tpchgen-cli`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATABASE = ROOT / ".models" / "tpch.duckdb"
TABLES = ("lineitem", "orders", "customer")


def make(path: Path = DATABASE, scale: float = 0.1) -> Path:
    """The database, whole: what is interrupted leaves nothing under its name."""
    if path.exists():
        return path
    import duckdb  # noqa: PLC0415 - of an extra

    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        generator = str(Path(sys.executable).with_name("tpchgen-cli"))
        arguments = ["parquet", "-s", str(scale), f"--output-dir={folder}"]
        tables = f"--tables={','.join(TABLES)}"
        subprocess.run([generator, *arguments, tables], check=True, capture_output=True)
        draft = Path(folder) / path.name
        with duckdb.connect(str(draft)) as database:
            for table in TABLES:
                database.execute(
                    f"CREATE TABLE {table} AS SELECT * FROM '{folder}/{table}.parquet'"  # noqa: S608 - our names
                )
        draft.replace(path)
    return path


if __name__ == "__main__":
    made = make(Path(sys.argv[1]) if len(sys.argv) > 1 else DATABASE, *map(float, sys.argv[2:3]))
    print(f"treadle: TPC-H is in {made}")
