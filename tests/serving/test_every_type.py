"""Every type of item, block and tool that the official SDKs can send: it is served, and the model
sees it or the response says that it does not.
"""

from __future__ import annotations

from typing import Any

import pytest
from anthropic.types.beta import BetaContentBlockParam, BetaToolUnionParam
from openai.types.responses import ResponseInputItemParam, ToolParam

from tests.serving.asks import PATHS, TOOLS, ask
from tests.serving.server import Server
from tests.serving.typed_dicts import MARK, kinds, made

ITEMS = kinds(ResponseInputItemParam)
BLOCKS = kinds(BetaContentBlockParam)
TOOLS_OF = {"responses": kinds(ToolParam), "messages": kinds(BetaToolUnionParam)}
LISTED = {  # named in the issue of this suite: more may come with new SDKs, none may go
    "message", "reasoning", "function_call", "function_call_output", "custom_tool_call",
    "custom_tool_call_output", "local_shell_call", "local_shell_call_output", "shell_call",
    "shell_call_output", "apply_patch_call", "apply_patch_call_output", "web_search_call",
    "mcp_call", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "computer_call",
    "computer_call_output", "item_reference", "compaction", "compaction_trigger",
    "tool_search_call", "tool_search_output", "additional_tools", "file_search_call",
    "code_interpreter_call", "image_generation_call",
}  # fmt: skip
OF_USERS = {
    "text", "image", "document", "search_result", "tool_result", "container_upload",
    "tool_addition", "tool_removal",
}  # fmt: skip
SPOKEN = {
    "compaction_trigger": "Sum up this conversation",
    "tool_search_call": "tool_search",
}
"""What the model reads of an item that has no words of its own."""

REFUSED = {"computer_call_output": "image", "image": "image"}
"""Pictures, for a family without eyes: a refusal that says so."""

ERROR = "error_code"
"""All that there is in the result of a server's tool that failed."""

RESULT = {"type": "function_call_output", "call_id": "c", "output": "x"}
SAY = {"role": "user", "content": "Go on."}


def seen(server: Server, answer: Any, kind: str) -> bool:
    """Whether something of it is in the prompt, or it is named in the header."""
    if answer.status_code == 400 and kind in REFUSED:
        return REFUSED[kind] in answer.text
    assert answer.status_code == 200, answer.text
    decode = server.ingress.models[0].folder.tokenizer.decode
    prompt = decode(server.engine.jobs[-1].prompt)
    told = answer.headers.get("x-treadle-ignored", "")
    words = (SPOKEN.get(kind, MARK), ERROR)
    return any(word in prompt for word in words) or kind in told or "sealed_reasoning" in told


def test_the_list_is_whole() -> None:
    assert set(ITEMS) >= LISTED
    assert len(BLOCKS) > 15
    assert all(len(types) > 12 for types in TOOLS_OF.values())


async def test_items_of_responses(server: Server) -> None:
    for kind, typed in ITEMS.items():
        item = made(typed, kind)
        body = ask("responses", input=[SAY, item, RESULT], store=False)
        if kind == "compaction_trigger":
            body["input"].pop()
        answer = await server.http.post(PATHS["responses"], json=body)
        assert seen(server, answer, kind), (kind, item, answer.headers)


async def test_blocks_of_messages(server: Server) -> None:
    for kind, typed in BLOCKS.items():
        block = made(typed, kind)
        role = "user" if kind in OF_USERS else "assistant"
        result = {"type": "tool_result", "tool_use_id": "t", "content": "x"}
        talk = [SAY, {"role": role, "content": [block]}, {"role": "user", "content": [result]}]
        body = ask("messages", messages=talk, tools=TOOLS["messages"])
        answer = await server.http.post(PATHS["messages"], json=body)
        assert seen(server, answer, kind), (kind, block, answer.headers)


@pytest.mark.parametrize("api", TOOLS_OF)
async def test_tools(server: Server, api: str) -> None:
    for kind, typed in TOOLS_OF[api].items():
        tool = made(typed, kind)
        answer = await server.http.post(PATHS[api], json=ask(api, tools=[tool]))
        own = SPOKEN | {
            kind: kind for kind in ("local_shell", "shell", "apply_patch", "tool_search")
        }
        decode = server.ingress.models[0].folder.tokenizer.decode
        if kind == "mcp_toolset":  # of a server that the request does not name
            assert answer.status_code == 400
            assert "mcp_servers" in answer.text
            continue
        assert answer.status_code == 200, (tool, answer.text)
        prompt, told = (
            decode(server.engine.jobs[-1].prompt),
            answer.headers.get("x-treadle-ignored", ""),
        )
        shown = own.get(kind, tool.get("name") or MARK)
        assert shown in prompt or kind in told, (kind, tool, told)


async def test_a_tool_that_was_left_for_later_is_offered_where_it_is_added(server: Server) -> None:
    later = TOOLS["messages"][0] | {"defer_loading": True, "name": "later"}
    added = {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "later"}}
    talk = [
        SAY,
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": [added]},
        SAY,
    ]
    body = ask("messages", messages=talk, tools=[later, *TOOLS["messages"]])
    answer = await server.http.post(PATHS["messages"], json=body)
    assert answer.status_code == 200, answer.text
    decode = server.ingress.models[0].folder.tokenizer.decode
    prompt = decode(server.engine.jobs[-1].prompt)
    assert prompt.index("Yes.") < prompt.index('"later"')
