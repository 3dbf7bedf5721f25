"""All that knows a version of vLLM: the one importer of it. Written against 0.32, V1 only.

Importing this module imports vLLM (7 CPU-seconds), which reads its environment as it does so:
`VllmEngine.start` sets that first (`environment.py`). vLLM's own statistics stay off: they cost
13 us a token.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vllm.config.kv_events import KVEventsConfig
from vllm.config.reasoning import ReasoningConfig
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.inputs.engine import tokens_input
from vllm.platforms import current_platform
from vllm.sampling_params import RequestOutputKind, SamplingParams, StructuredOutputsParams
from vllm.v1.engine.async_llm import AsyncLLM
from vllm.v1.engine.exceptions import EngineDeadError

from actors.engines.engine import EngineInfo
from actors.engines.vllm.kv_feed import KvEndpoints
from actors.engines.vllm.pixels import Readable
from actors.engines.vllm.sampling import constraint_fields, sampling_fields
from actors.engines.vllm.settings import VllmSettings
from actors.engines.vllm.shown import shown
from turns.errors import EngineError
from turns.frames import Finish, Job

FINISH: dict[str, Finish] = {
    "stop": "stop",
    "length": "length",
    "abort": "abort",
    "repetition": "stop",
}

Rows = list[list[tuple[int, float]]]
Tokens = Callable[[list[int], int, Finish | None, Rows | None], None]
"""Takes a step's new ids, the prompt tokens that the cache held, the finish if it ended, and the
logprobs where they were asked for, as in `Frame`.
"""

Failed = Callable[[str], None]


def engine_args(settings: VllmSettings, kv: KvEndpoints | None) -> AsyncEngineArgs:
    cpu = current_platform.is_cpu()
    gib = settings.kv_cache_gib or (1 if cpu else None)
    named: dict[str, Any] = {
        "model": settings.model,
        "tokenizer": settings.tokenizer,
        "max_model_len": settings.max_model_len,
        "max_num_seqs": settings.max_turns,
        "max_num_batched_tokens": settings.max_batch_tokens,
        "block_size": settings.block_size or (32 if cpu else None),  # a CPU's own default is 128
        "kv_cache_memory_bytes": None if gib is None else int(gib * (1 << 30)),
        "gpu_memory_utilization": settings.gpu_memory,
        "tensor_parallel_size": settings.tensor_parallel,
        "dtype": settings.dtype,
        "enforce_eager": cpu if settings.eager is None else settings.eager,
        "load_format": settings.load_format,
        "seed": settings.seed,
        "enable_prefix_caching": True,
        "prefix_caching_hash_algo": "sha256_cbor",  # the same in every process
        "scheduling_policy": "priority",
        "disable_log_stats": True,
    }
    if kv is not None:
        named["kv_events_config"] = KVEventsConfig(
            enable_kv_cache_events=True,
            publisher="zmq",
            endpoint=kv.events,
            replay_endpoint=kv.replay,
        )
    if settings.thinking is not None:
        opening, closing = settings.thinking
        named["reasoning_config"] = ReasoningConfig(
            reasoning_start_str=opening, reasoning_end_str=closing
        )
    chosen = {name: value for name, value in named.items() if value is not None}
    return AsyncEngineArgs(**(chosen | settings.options))


class Core:
    """One running vLLM. Built in a thread (it takes 20 seconds and more), used on one loop."""

    def __init__(self, settings: VllmSettings, kv: KvEndpoints | None) -> None:
        self._llm = AsyncLLM.from_engine_args(engine_args(settings, kv))
        config = self._llm.vllm_config
        self._budgets = settings.thinking is not None
        self.readable = Readable()
        self._defaults: dict[str, Any] = config.model_config.get_diff_sampling_param()
        self.info = EngineInfo(
            block_size=config.cache_config.block_size,
            max_model_len=config.model_config.max_model_len,
            vocab_size=config.model_config.get_vocab_size(),
            max_turns=config.scheduler_config.max_num_seqs,
            kv_blocks=config.cache_config.num_gpu_blocks or 0,
            sees_images=sees_images(self._llm),
        )

    def params(self, job: Job, room: int) -> SamplingParams:
        """Raises InvalidRequestError or ValueError for what vLLM would refuse."""
        fields = sampling_fields(job, room, self._defaults)
        if job.constraint is not None:
            fields["structured_outputs"] = StructuredOutputsParams(
                **constraint_fields(job.constraint)
            )
        if job.thinking_budget is not None and self._budgets:
            fields["thinking_token_budget"] = job.thinking_budget
        return SamplingParams(**fields, detokenize=False, output_kind=RequestOutputKind.DELTA)

    async def add(self, job: Job, params: SamplingParams, tokens: Tokens, failed: Failed) -> str:
        """Hand the job over; returns vLLM's name for it. Raises EngineError or ValueError.

        A task per turn that awaits `generate()` costs a wake-up a token (35 us a token in all,
        against 27): so what vLLM puts into the turn's collector is taken where it is put, in the
        same pass that vLLM makes over all turns of a step.
        """

        def put(output: Any) -> None:
            if isinstance(output, BaseException):
                failed(reason(output))
                return
            made = output.outputs[0]
            finish = made.finish_reason
            if finish is not None and finish not in FINISH:
                failed(f"vLLM ended the turn with {finish!r}")
                return
            tokens(
                list(made.token_ids),
                output.num_cached_tokens or 0,
                None if finish is None else FINISH[finish],
                rows(made.token_ids, made.logprobs, params.logprobs or 0),
            )

        prompt: Any = tokens_input(job.prompt, cache_salt=job.salt or None)
        if job.pictures:
            prompt = await self._shown(job)
        try:
            queue = await self._llm.add_request(job.turn, prompt, params, priority=job.priority)
        except EngineDeadError as error:
            raise EngineError(reason(error)) from error
        queue.put = put
        early = queue.get_nowait()  # raises what vLLM put there, as add_request itself would
        if early is not None:
            put(early)
        return str(queue.request_id)

    async def _shown(self, job: Job) -> Any:
        """The prompt with its pictures; nothing may come between it and handing it over, for vLLM
        has noted by then which pictures its engine will know.
        """
        try:
            return await shown(self._llm.renderer, job)
        except EngineError:
            await self._llm.reset_mm_cache()
            raise

    async def abort(self, name: str) -> None:
        await self._llm.abort(name, internal=True)

    def dead(self) -> str:
        """Why no turn can run any more, "" while they can."""
        return reason(self._llm.dead_error) if self._llm.errored else ""

    def close(self) -> None:
        self._llm.shutdown(timeout=0)
        del self._llm  # its __del__ fails when it runs as late as the interpreter's end


def sees_images(llm: AsyncLLM) -> bool:
    """Whether the model takes images, and its options leave it any."""
    if not llm.vllm_config.model_config.supports_multimodal_inputs:
        return False
    limits: dict[str, int] = llm.renderer.get_mm_processor().info.allowed_mm_limits
    return limits.get("image", 0) > 0


def rows(ids: Any, logprobs: Any, top: int) -> Rows | None:
    """Logprobs as a frame has them, of a mapping a token; the token itself is in each, also where
    it is none of the `top`.
    """
    if logprobs is None:
        return None
    found: Rows = []
    for token, known in zip(ids, logprobs, strict=True):
        ranked = sorted(known.items(), key=lambda entry: -entry[1].logprob)
        own = (token, known[token].logprob)
        found.append([own, *((one, entry.logprob) for one, entry in ranked[:top])])
    return found


def reason(error: BaseException) -> str:
    if isinstance(error, EngineDeadError):
        return "the vLLM engine died; its log says why"
    return f"{type(error).__name__}: {error}"
