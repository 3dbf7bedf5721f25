"""A job's sampling in vLLM's words, as plain data: which fields, which values, what is refused."""

from __future__ import annotations

from typing import Any

import msgspec

from turns.errors import ContextTooLongError, EngineError, InvalidRequestError
from turns.frames import Job

NAMES = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "logprobs",
)
CONSTRAINTS = frozenset({"json", "json_object", "regex", "choice", "grammar", "structural_tag"})


def check_prompt(prompt: list[int], *, vocab_size: int, max_model_len: int) -> int:
    """Tokens left for the answer. vLLM dies of an id outside the vocabulary, so none gets there."""
    if not prompt:
        raise InvalidRequestError("the prompt is empty")
    room = max_model_len - len(prompt)
    if room < 1:
        # One token must fit behind the prompt: that is the longest prompt the model takes.
        raise ContextTooLongError(len(prompt), max_model_len - 1)
    if min(prompt) < 0 or max(prompt) >= vocab_size:
        wrong = next(i for i in prompt if not 0 <= i < vocab_size)
        raise InvalidRequestError(f"token id {wrong} is outside the vocabulary of {vocab_size}")
    return room


def sampling_fields(job: Job, room: int, defaults: dict[str, Any]) -> dict[str, Any]:
    """Fields of vLLM's `SamplingParams` for a job; `defaults` are the model's own.

    `max_tokens` is clipped to the room behind the prompt. Stop strings stay out: they act on
    visible text, which only the parser knows. A later leg of a turn (`job.resumed`) cannot be given
    the state that its first tokens left: its seed is moved on, so that their draws do not come
    again, and presence and frequency penalties begin anew (docs/failures.md).
    """
    if job.resumed and job.constraint is not None:
        raise EngineError(
            "the engine of this turn was lost, and one with structured output cannot go on "
            "elsewhere; send it again"
        )
    wanted = job.sampling
    said = {name: getattr(wanted, name) for name in NAMES if getattr(wanted, name) is not None}
    usual = defaults["max_tokens"] - job.resumed if "max_tokens" in defaults else room
    limit = usual if wanted.max_tokens is None else wanted.max_tokens
    if wanted.seed is not None:
        said["seed"] = wanted.seed + job.resumed
    fields = {**defaults, **said, "max_tokens": min(limit, room)}
    if fields["max_tokens"] < 1:
        raise InvalidRequestError("max_tokens must be at least 1", param="max_tokens")
    if job.stop_ids:
        fields["stop_token_ids"] = list(job.stop_ids)
    return fields


def constraint_fields(constraint: dict[str, Any]) -> dict[str, Any]:
    """Fields of vLLM's `StructuredOutputsParams`, from `{"json": schema}` and the like."""
    unknown = constraint.keys() - CONSTRAINTS
    if unknown or len(constraint) != 1:
        raise InvalidRequestError(
            f"a constraint is one of {', '.join(sorted(CONSTRAINTS))}; got {sorted(constraint)}"
        )
    tag = constraint.get("structural_tag")
    if tag is not None and not isinstance(tag, str):
        return {"structural_tag": msgspec.json.encode(tag).decode()}  # vLLM reads it as JSON text
    return constraint
