"""vLLM's own input processor on a thin model that sees, in a process of its own; no engine starts.

`python -m tests.actors.engines.vllm.showing FOLDER` prints what it found as one line of JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from actors.engines.vllm.environment import prepare
from families import registry
from prompts.prompter import Prompter
from tests.actors.engines.vllm.sight import FAMILY, as_templated, both_counts
from tests.serving.pictures import base64, png
from tests.serving.vllm.shared import thin_settings
from turns.blocks import Image, Message, Text
from turns.frames import Job, ParseSpec
from turns.turn import Sampling, Turn

SIZES = [(224, 160), (65, 63), (224, 160), (1000, 31)]
LIMITS = {"limit_mm_per_prompt": {"image": 8, "video": 0}}


def asked(folder: Path) -> tuple[Prompter, Job]:
    """A turn of several pictures, one of them twice, as an engine is given it."""
    prompter = Prompter.load(folder, registry.get(FAMILY))
    blocks: list[Text | Image] = []
    for width, height in SIZES:
        blocks += [
            Text(f"look at {width}"),
            Image("image/png", base64(png(width, height, width % 200))),
        ]
    prompt = prompter.prepare(Turn("t", "messages", "m", (Message("user", tuple(blocks)),)))
    return prompter, Job("t", prompt.ids, Sampling(), ParseSpec("f", ""), pictures=prompt.pictures)


async def run(folder: Path) -> dict[str, Any]:
    settings = thin_settings(folder, max_model_len=4096, options=LIMITS)
    prepare(settings)
    from vllm.renderers import renderer_from_config  # noqa: PLC0415 -- reads the environment

    from actors.engines.vllm.binding import engine_args  # noqa: PLC0415
    from actors.engines.vllm.pixels import decoded  # noqa: PLC0415
    from actors.engines.vllm.shown import shown  # noqa: PLC0415

    prompter, job = asked(folder)
    renderer = renderer_from_config(engine_args(settings, None).create_engine_config())
    processor = renderer.get_mm_processor().info.get_image_processor()
    counts = both_counts(prompter.sight, processor)
    made = [await shown(renderer, job) for _ in range(2)]
    whole = {
        "prompt_token_ids": as_templated(job),
        "multi_modal_data": {"image": [decoded(one) for one in job.pictures]},
    }
    (own,) = await renderer.render_cmpl_async([whole], skip_mm_cache=True)
    wrong = Job("w", [*job.prompt, 7], Sampling(), ParseSpec("f", ""), pictures=job.pictures[:1])
    wrong.prompt[job.pictures[0].at] = 7
    try:
        refused = str(await shown(renderer, wrong))
    except Exception as error:  # noqa: BLE001 -- what it is, is looked at
        refused = f"{type(error).__name__}: {error}"
    renderer.shutdown()
    places = lambda one: [(p.offset, p.length) for p in one["mm_placeholders"]["image"]]  # noqa: E731
    return {
        "counts": counts,
        "prompt": job.prompt,
        "pictures": [(one.at, one.length) for one in job.pictures],
        "digests": [one.digest for one in job.pictures],
        "shown": [
            (one["prompt_token_ids"], places(one), one["mm_hashes"]["image"]) for one in made
        ],
        "sent": [[item is not None for item in one["mm_kwargs"]["image"]] for one in made],
        "own": (own["prompt_token_ids"], places(own)),
        "refused": refused,
    }


if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(asyncio.run(run(Path(sys.argv[1])))) + "\n")
