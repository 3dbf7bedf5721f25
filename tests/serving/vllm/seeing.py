"""A real vLLM of a thin model that sees, in a process of its own: what was asked and what came of it.

`python -m tests.serving.vllm.seeing FOLDER` prints what it found as one line of JSON. A process of
its own, since Qwen's image processor does not load without torchvision (`standin`), and the other
tests are to run as they would without.
"""

from __future__ import annotations

import asyncio
import json
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tests.actors.engines.vllm.sight import FAMILY, as_templated, both_counts
from tests.serving.asks import PATHS, TOOLS, ask
from tests.serving.pictures import base64, part, png, question
from tests.serving.server import Server, serving, settings
from tests.serving.vllm.shared import BLOCK, SharedEngine, thin_settings
from turns.frames import Job

COUNTED = {"messages": "/v1/messages/count_tokens", "responses": "/v1/responses/input_tokens"}
WIDE = {"messages": 224, "responses": 225, "chat": 226}
"""A picture of its own for each API, so that none finds what another left."""


def asked(api: str, *said: dict[str, Any], **fields: Any) -> dict[str, Any]:
    field = "input" if api == "responses" else "messages"
    return ask(api, **{field: list(said)}, tools=TOOLS[api], **fields)


async def answered(server: Server, api: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = await server.http.post(PATHS[api], json=body)
    if answer.status_code != 200:
        return {"status": answer.status_code, "body": answer.json()}
    raw = answer.text
    if not body.get("stream"):
        return {"usage": answer.json()["usage"], "body": answer.json()}
    datas = [json.loads(line[6:]) for line in raw.splitlines() if line.startswith("data: {")]
    return {"events": datas}


async def counted(server: Server, api: str, body: dict[str, Any]) -> int:
    """What the API says of the request before it is run."""
    sent = {key: value for key, value in body.items() if key not in ("max_tokens", "stream")}
    path = COUNTED.get(api, "/v1/tokenize")
    told = (await server.http.post(path, json=sent)).json()
    return int(told.get("input_tokens", told.get("count", -1)))


async def overlap(server: Server, job: Job) -> int:
    """Tokens of the job's prompt, rendered anew, that the router takes to be in the replica's cache,
    once it has heard of the pictures' too.
    """
    end = max(one.at + one.length for one in job.pictures)
    found = 0
    for _ in range(200):
        found = await _overlap(server, job)
        if found >= end // BLOCK * BLOCK:
            break
        await asyncio.sleep(0.05)
    return found


async def _overlap(server: Server, job: Job) -> int:
    model = server.ingress.models[0]
    assert job.conversation is not None
    prompt = model.folder.prompter.prepare(job.conversation)
    taken = await model.choose(job.conversation, prompt)
    model.release(taken)
    return taken.overlap_tokens


async def conversation(server: Server, api: str) -> dict[str, Any]:
    """One turn, streamed and not, its second turn, and the same with another picture."""
    red, blue = (base64(png(WIDE[api], 160, grey)) for grey in (20, 220))
    first = asked(api, question(api, red, text=f"I am {api}. " + "look " * 90))
    count = await counted(server, api, first)
    streamed = await answered(server, api, first | {"stream": True})
    again = await answered(server, api, first)
    answer = again["body"]
    match api:
        case "messages":
            told = [{"role": "assistant", "content": answer["content"]}]
        case "responses":
            told = answer["output"]
        case _:
            told = [answer["choices"][0]["message"]]
    more = asked(api, question(api, red, text=f"I am {api}. " + "look " * 90), *told,
                 {"role": "user", "content": "And what else?"})  # fmt: skip
    second = await answered(server, api, more)
    other = asked(api, question(api, blue, text=f"I am {api}. " + "look " * 90))
    different = await answered(server, api, other)
    jobs = server.engine.jobs[-4:]
    return {
        "count": count,
        "streamed": streamed["events"],
        "again": again["usage"],
        "second": second["usage"],
        "different": different["usage"],
        "prompts": [len(job.prompt) for job in jobs],
        "cached": [server.engine.cached[job.turn] for job in jobs],
        "overlap": [await overlap(server, job) for job in jobs],
        "pictures": [[(one.at, one.length) for one in job.pictures] for job in jobs],
        "output": [len(server.engine.output[job.turn]) for job in jobs],
    }


async def refusals(server: Server) -> dict[str, Any]:
    """Pictures whose header is good and whose body is not."""
    broken = base64(png(224, 160)[:60])
    found = {api: await answered(server, api, asked(api, question(api, broken))) for api in PATHS}
    good = await answered(server, "messages", asked("messages", question("messages")))
    return {"broken": found, "after": good["usage"]}


async def result(server: Server) -> list[tuple[int, int]]:
    """The pictures of a turn that has one in a tool's result."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "forecast", "input": {}}
    shown = {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": [part("messages", base64(png(320, 64))), {"type": "text", "text": "chart"}],
    }
    said = [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [shown]},
    ]
    await answered(server, "messages", asked("messages", *said))
    return [(one.at, one.length) for one in server.engine.jobs[-1].pictures]


async def as_vllm_reads(shared: SharedEngine, jobs: list[Job]) -> list[bool]:
    """Whether vLLM makes the very prompts that were counted, from what a template writes."""
    from PIL import Image as Pixels  # noqa: PLC0415

    core: Any = shared.engine._core
    same = []
    for job in jobs:
        images = [Pixels.open(BytesIO(one.data)).convert("RGB") for one in job.pictures]
        asked_of = {"prompt_token_ids": as_templated(job), "multi_modal_data": {"image": images}}
        (made,) = await core._llm.renderer.render_cmpl_async([asked_of], skip_mm_cache=True)
        places = [(p.offset, p.length) for p in made["mm_placeholders"]["image"]]
        own = [(one.at, one.length) for one in job.pictures]
        same.append(made["prompt_token_ids"] == job.prompt and places == own)
    return same


def counts(server: Server, shared: SharedEngine) -> list[tuple[int, int, int, int]]:
    core: Any = shared.engine._core
    processor = core._llm.renderer.get_mm_processor().info.get_image_processor()
    return both_counts(server.ingress.models[0].folder.prompter.sight, processor)


async def run(folder: Path) -> dict[str, Any]:
    limits = {"limit_mm_per_prompt": {"image": 8, "video": 0}}
    shared = SharedEngine(thin_settings(folder, max_model_len=4096))
    options = {**shared.engine._settings.options, **limits}
    shared.engine._settings = replace(shared.engine._settings, options=options)
    await shared.open()
    model = {"family": FAMILY, "folder": str(folder)}
    try:
        async with serving(settings(model=model, options={}), engine=shared) as server:
            shared.prompter = server.ingress.models[0].folder.prompter
            shared.say = lambda _: [{"text": "A grey dot."}]
            talks = {api: await conversation(server, api) for api in PATHS}
            shown = await result(server)
            seen = [job for job in server.engine.jobs if job.pictures]
            return {
                "block": BLOCK,
                "talks": talks,
                "result": shown,
                "same": await as_vllm_reads(shared, seen),
                "counts": counts(server, shared),
                "refusals": await refusals(server),
                "models": (await server.http.get("/v1/models")).json()["data"],
            }
    finally:
        await shared.close()


if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(asyncio.run(run(Path(sys.argv[1])))) + "\n")
