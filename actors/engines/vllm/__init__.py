"""vLLM as an engine: token ids in, token ids out, over its in-process AsyncLLM.

Rule of the folder: only `binding.py` imports vLLM; importing anything else here neither needs vLLM
nor torch. `convert.py` makes model folders and stands apart.
"""

from __future__ import annotations

from actors.engines.vllm.engine import VllmEngine
from actors.engines.vllm.settings import VllmSettings

__all__ = ["VllmEngine", "VllmSettings"]
