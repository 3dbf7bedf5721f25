# The same steps as CI's, one by one. `just` alone lists them.
export PATH := justfile_directory() / ".venv/bin:" + env("PATH")

_default:
    @just --list --unsorted

# make the environment (.venv) from its lock
setup *arguments:
    "$(scripts/find-python)" scripts/bootstrap.py setup {{arguments}}

# everything CI runs
check *steps:
    ./test {{steps}}

# format the code and fix what can be fixed
format:
    ruff format .
    ruff check --fix .

lint:
    python scripts/check.py format lint

types:
    python scripts/check.py types

# the import contracts of pyproject.toml
floors:
    python scripts/check.py floors

# the rooms' tests against their wheels, where nothing else is installed
test-wheels:
    python scripts/check.py test-alone test-prompts

# tests that start neither Ray nor an engine
test:
    python scripts/check.py test

# the console in the system's Chromium (apt install chromium); with TREADLE_SCREENSHOTS=1 it
# writes docs/images anew
test-browser:
    python scripts/check.py test-browser

test-ray:
    python scripts/check.py test-ray

# `ray up` over SSH on three hosts made of namespaces; nightly, as root on Linux (openssh-server, rsync)
test-hosts:
    TREADLE_HOSTS=1 pytest -q tests/clusters/test_ray_up.py

test-vllm:
    python scripts/check.py test-vllm

# the real harness CLIs: what each does on its APIs, sessions, errors, tools that are searched for
harness:
    python scripts/check.py test-harness

# the same and the slowest two of them, cline and OpenClaw (nightly: installs 1 GB more)
harness-all:
    TREADLE_ALL_HARNESSES=1 python scripts/check.py test-harness

# real Claude Code and Codex stop a stream over TPC-H through /mcp
harness-tools: tpch
    pytest -q -m harness tests/harness/test_streaming_tools.py

# TPC-H for clusters/tools.yaml, once
tpch *arguments:
    python scripts/tpch.py {{arguments}}

# benchmarks/bench_NAME.py
bench name *arguments:
    PYTHONPATH={{justfile_directory()}} python benchmarks/bench_{{name}}.py {{arguments}}

# all benchmarks, quick, into docs/benchmarks.md
benchmarks *arguments:
    python scripts/benchmarks.py {{arguments}}

# what a stranger does with a fresh clone, timed (Claude Code; ten minutes, 3 GB)
strangers-run *arguments:
    python scripts/strangers_run.py {{arguments}}

# a config of clusters/ or a path, until Ctrl-C
serve config="":
    ./run {{config}}

# seeded kills of every kind of process under load, 100 by default (--kills N, --seed N)
chaos *arguments:
    python benchmarks/chaos.py {{arguments}}

# the property tests, with many more examples than CI takes
fuzz-tests *arguments:
    pytest -q -m "not ray and not vllm and not harness and not gpu and not browser" --hypothesis-profile=fuzz {{arguments}}

# a search for outputs that break a law of the parsers (Linux)
fuzz seconds="60":
    uv pip install --quiet --python .venv/bin/python --group fuzz
    python fuzz/fuzz_parsers.py -max_total_time={{seconds}}

# 10,000 mutated requests of each API through the whole server (--quick: 300)
fuzz-requests *arguments:
    python fuzz/fuzz_requests.py {{arguments}}

# family x case and API x case; the parsers' matrix goes to docs/conformance.md
conformance:
    pytest -q tests/conformance
    python -m tests.conformance.matrix

# docs/metrics.md and docs/families.md, from the code
reference:
    python -m scripts.reference

# the rooms as packages of their own, into dist/
wheels *arguments:
    python scripts/wheels.py {{arguments}}

# requirements/*.lock from pyproject.toml
lock *arguments:
    scripts/lock {{arguments}}

# CHANGELOG.md as it would read now; `just changelog --yes` writes it
changelog *arguments="--draft":
    towncrier build --version "$(grep -m1 -oP '^version = "\K[^"]+' pyproject.toml)" {{arguments}}
