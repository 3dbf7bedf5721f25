"""The environment that vLLM reads at import, and that its processes inherit.

Ray caps OpenMP at one thread in an actor with less than two CPUs, so the number of threads is
always set here. What the caller exported as VLLM_* or HF_* stays.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping

from actors.engines.vllm.settings import VllmSettings


def prepare(settings: VllmSettings, environ: MutableMapping[str, str] = os.environ) -> None:
    wanted = {
        "HF_HUB_OFFLINE": "1",  # a model is a folder; no hub is asked
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_LOGGING_LEVEL": "ERROR",
        "VLLM_CPU_OMP_THREADS_BIND": settings.bind,
        "TOKENIZERS_PARALLELISM": "false",
    }
    for name, value in wanted.items():
        environ.setdefault(name, value)
    environ["OMP_NUM_THREADS"] = str(settings.threads or len(os.sched_getaffinity(0)))
