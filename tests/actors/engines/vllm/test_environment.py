from __future__ import annotations

from actors.engines.vllm.environment import prepare
from actors.engines.vllm.settings import VllmSettings


def test_threads_overrule_what_ray_sets() -> None:
    environ = {"OMP_NUM_THREADS": "1"}
    prepare(VllmSettings("m", threads=3), environ)
    assert environ["OMP_NUM_THREADS"] == "3"


def test_no_hub_and_no_reports_unless_the_caller_wants_them() -> None:
    environ: dict[str, str] = {"VLLM_LOGGING_LEVEL": "DEBUG"}
    prepare(VllmSettings("m", bind="0-1"), environ)
    assert environ["HF_HUB_OFFLINE"] == "1"
    assert environ["VLLM_NO_USAGE_STATS"] == "1"
    assert environ["VLLM_LOGGING_LEVEL"] == "DEBUG"
    assert environ["VLLM_CPU_OMP_THREADS_BIND"] == "0-1"
