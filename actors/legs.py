"""Legs: a turn that loses its place goes on elsewhere behind the tokens that it has said.

A leg is one stay of a turn on one replica. The first goes by the turn's own name, later ones by a
name of their own, so that what is late from an old leg is never taken for the new one's. All that
knows how a turn goes on is here; a death, a hang, a drain and a preemption are the same to it.

What an engine sees of a later leg is a longer prompt and fewer tokens to say (`Job.resumed`). What
it cannot be told is noted where it is lost: `actors.engines.vllm.sampling`.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from turns.frames import Finish, Job

MARK = "~"


def leg(job: Job, number: int, said: Sequence[int]) -> Job:
    """The job of leg `number` (0: the first) of a turn that has said these tokens."""
    if not number:
        return job
    sampling, most = job.sampling, job.sampling.max_tokens
    if most is not None:
        sampling = replace(sampling, max_tokens=most - len(said))
    return replace(
        job,
        turn=f"{job.turn}{MARK}{number}",
        prompt=[*job.prompt, *said],
        sampling=sampling,
        resumed=len(said),
    )


def turn_of(name: str) -> str:
    """The turn that a leg is of."""
    return name.partition(MARK)[0]


def said(job: Job) -> list[int]:
    """What the turn had said before this leg."""
    return job.prompt[len(job.prompt) - job.resumed :]


def over(job: Job) -> Finish | None:
    """How a later leg has ended before it begins: the last token came, the word of the end did not.

    An engine that was asked to go on would say more than it may.
    """
    if not job.resumed:
        return None
    if job.prompt[-1] in job.stop_ids:
        return "stop"
    most = job.sampling.max_tokens
    return "length" if most is not None and most < 1 else None
