"""A turn: one request to the model, in the words of no API."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

from turns.blocks import Message
from turns.servers import Served, ToolServer

Api = Literal["messages", "responses", "chat"]


class Tool(Struct, frozen=True):
    """A tool that the model may call.

    `parameters` is the JSON schema as received, its key order kept. A `custom` tool takes free
    text, constrained by `format` where the engine can. A `deferred` tool stays out of the prompt's
    tool header until a `ToolReference` shows it. A `served` tool is run by us, not by the client.
    """

    name: str
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    kind: Literal["function", "custom"] = "function"
    strict: bool = False
    deferred: bool = False
    namespace: str = ""
    format: dict[str, Any] | None = None
    served: Served | None = None


class ToolChoice(Struct, frozen=True):
    """Whether the model may, must or must not call; `named` names the one tool it must call."""

    mode: Literal["auto", "required", "named", "none"] = "auto"
    name: str = ""
    parallel: bool = True


class Thinking(Struct, frozen=True):
    """The neutral thinking control of all APIs. `default` leaves the choice to the family.

    `budget` is in tokens. `show` says whether the client asked to see the reasoning; `hidden` that
    it shall not even learn of it.
    """

    mode: Literal["default", "on", "off"] = "default"
    effort: str = ""
    budget: int | None = None
    show: bool = True
    hidden: bool = False


class Sampling(Struct, frozen=True):
    """How tokens are drawn; None leaves it to the model. `stop` acts on visible text only.

    `logprobs`: how likely each token was is wanted, and so many of the likeliest beside it.
    """

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repetition_penalty: float | None = None
    stop: tuple[str, ...] = ()
    logprobs: int | None = None


class OutputFormat(Struct, frozen=True):
    """The shape that the visible answer must have."""

    kind: Literal["text", "json_object", "json_schema"] = "text"
    schema: dict[str, Any] | None = None
    name: str = ""
    strict: bool = False


class Hints(Struct, frozen=True, omit_defaults=True):
    """What the harness told about the turn (`nvext.agent_hints`, `x-treadle-*`), as received.

    `priority`: higher is more urgent. `tier`: whoever is of a higher one goes first, however long
    others have waited. `osl`: expected output length in tokens.
    `latency_sensitivity`: 0 (batch) to 1 (interactive). `deadline_s`: seconds that the whole task
    has left; `task_tokens`: tokens that it has left (Anthropic's `task_budget`). `retain_s`:
    seconds that the prompt shall be kept in the cache (`cache_control` with a ttl). `final`: the
    session ends with this turn.
    """

    priority: int = 0
    tier: int = 0
    osl: int | None = None
    latency_sensitivity: float | None = None
    speculative_prefill: bool = False
    deadline_s: float | None = None
    task_tokens: int | None = None
    retain_s: int = 0
    final: bool = False


class Turn(Struct, frozen=True):
    """One request to the model. System text is the first message(s) with role `system`.

    `session` is the harness's own session key or "" when it gave none. `template_kwargs` goes to
    the chat template as it is. `edits` say what the client wants forgotten of its history, as
    received (Anthropic's `context_management`). `previous` is the id of a stored response that this
    turn continues. `servers` have tools that we run; `approved` are ids of calls to them that stand
    in `messages` without a result, because the client had to consent first. `salt` keeps the prompt
    apart in prefix caches: whose it is, and what the client adds.
    """

    id: str
    api: Api
    model: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice = field(default_factory=ToolChoice)
    sampling: Sampling = field(default_factory=Sampling)
    thinking: Thinking = field(default_factory=Thinking)
    output: OutputFormat = field(default_factory=OutputFormat)
    hints: Hints = field(default_factory=Hints)
    stream: bool = False
    session: str = ""
    parent_session: str = ""
    previous: str = ""
    store: bool = False
    template_kwargs: dict[str, Any] = field(default_factory=dict)
    edits: tuple[dict[str, Any], ...] = ()
    servers: tuple[ToolServer, ...] = ()
    approved: tuple[str, ...] = ()
    salt: str = ""
    echo: dict[str, Any] = field(default_factory=dict)
    """Request fields that only this API's own encoder reads back (metadata, include_usage …)."""
