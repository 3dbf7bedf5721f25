"""Settings: what a cluster's YAML may say, checked before anything is started."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

from deployments import profiles
from prompts.pictures import ImageLimits


class Strict(BaseModel):
    """An unknown key is an error: a misspelt setting must not be silently without effect."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class AutoscaleSettings(Strict):
    """Replicas by load, from `at_least` to `at_most`; see `router.scaling` for the targets."""

    at_least: Annotated[int, Field(ge=1)] = 1
    at_most: Annotated[int, Field(ge=1)]
    turns: Annotated[float, Field(gt=0, le=1)] = 0.7
    kv_used: Annotated[float, Field(gt=0, le=1)] = 0.8
    prefill_tokens: Annotated[float, Field(gt=0)] = 20_000
    calm_s: Annotated[float, Field(ge=0)] = 300

    @model_validator(mode="after")
    def bounds_are_in_order(self) -> AutoscaleSettings:
        """A fleet cannot shrink above its largest size."""
        if self.at_most < self.at_least:
            msg = f"autoscale: at_most {self.at_most} is below at_least {self.at_least}"
            raise ValueError(msg)
        return self


class EngineSettings(Strict):
    """Which engine runs a model, how many replicas of it, and what they may use.

    `options` goes to the engine as it is: see `ScriptedSettings` and `VllmSettings`. With
    `autoscale` the number of replicas follows the load, and `replicas` says nothing.
    `max_ongoing` is how many calls Serve lets through to a replica at once.
    """

    kind: Literal["scripted", "vllm"] = "scripted"
    replicas: Annotated[int, Field(ge=1)] = 1
    cpus: Annotated[float, Field(ge=0)] = 0
    gpus: Annotated[float, Field(ge=0)] = 0
    max_ongoing: Annotated[int, Field(ge=1)] = 512
    drain_s: Annotated[float, Field(gt=0)] = 1800
    autoscale: AutoscaleSettings | None = None
    options: dict[str, Any] = {}

    @model_validator(mode="after")
    def placed_turns_get_in(self) -> EngineSettings:
        """Serve lets more calls through than the router may place turns."""
        turns = self.options.get("max_turns", 0)
        if isinstance(turns, int) and turns >= self.max_ongoing:
            msg = (
                f"engine.max_ongoing is {self.max_ongoing}: set it higher than max_turns ({turns})"
            )
            raise ValueError(msg)
        return self


class ImageSettings(Strict):
    """What pictures a request may hold: how many, the bytes and pixels of each, the pixels of all.

    Pixels bound the memory that an engine decodes them into, three bytes each.
    """

    most: Annotated[int, Field(ge=0)] = ImageLimits().most
    most_bytes: Annotated[int, Field(ge=1024)] = ImageLimits().most_bytes
    most_pixels: Annotated[int, Field(ge=1)] = ImageLimits().most_pixels
    all_pixels: Annotated[int, Field(ge=1)] = ImageLimits().all_pixels


class PromptSettingsModel(Strict):
    """What may be done to a prompt before it is tokenised; see `prompts.prompter.PromptSettings`.

    `efforts` are merged into the budgets that stand there.
    """

    strip_billing_header: bool = True
    hoist_system: bool = True
    keep_thinking_turns: Annotated[int | None, Field(ge=0)] = None
    forget_after_idle_s: Annotated[float | None, Field(gt=0)] = None
    request_templates: bool = False
    unasked_thinking: bool = True
    images: ImageSettings = ImageSettings()
    efforts: dict[str, Annotated[int, Field(ge=1)] | None] = {}


class ModelSettings(Strict):
    """One served model. `folder` may be `scripted:` (built on the fly, no model needed).

    `aliases` are other names of it; `profile` is a file of `clusters/profiles`, by its name.
    `dispatch`: complete calls are announced to clients that do not say whether they want it; strict
    clients fail on `events`, none on `comments`.
    """

    name: str
    folder: str = "scripted:"
    family: str = "auto"
    aliases: tuple[str, ...] = ()
    profile: str = ""
    display_name: str = ""
    context_window: Annotated[int | None, Field(ge=1)] = None
    max_output: Annotated[int | None, Field(ge=1)] = None
    dispatch: Literal["", "events", "comments"] = ""
    parsers: Annotated[int, Field(ge=1, le=8)] = 1
    prompt: PromptSettingsModel = PromptSettingsModel()
    engine: EngineSettings = EngineSettings()


class AliasSettings(Strict):
    """Another name of a served model, or a pattern such as `claude-*`; its own profile if given."""

    name: str
    model: str
    profile: str = ""


class AttachmentSettings(Strict):
    """Files and pictures in requests. `fetch_urls`: what a URL leads to is fetched, from addresses
    of the open internet alone; off, such a picture is refused and such a file reported.

    `most_bytes` and `seconds` bound one file or one URL, `pages` what is read of a PDF.
    """

    fetch_urls: bool = False
    most_bytes: Annotated[int, Field(ge=1024)] = 32 * 2**20
    seconds: Annotated[float, Field(gt=0)] = 20.0
    pages: Annotated[int, Field(ge=1)] = 100


class IngressSettings(Strict):
    """The HTTP side. `keepalive_s`: a silent stream gets a keep-alive event after that long.

    A coded (compressed) body may decode to `max_body_ratio` times its size. `cors_origins` are the
    web pages that may call: "https://app.example", or "*"; none by default. `open_calls` is how
    many tool calls each ingress remembers, so that a streaming tool may ask the model that made
    one; the store has them for all ingresses. 0: nobody is asked.
    """

    replicas: Annotated[int, Field(ge=1)] = 1
    keepalive_s: Annotated[float, Field(gt=0, le=15)] = 10.0
    max_body_bytes: Annotated[int, Field(ge=1024)] = 64 * 2**20
    max_body_ratio: Annotated[float, Field(ge=1)] = 200.0
    cors_origins: tuple[str, ...] = ()
    open_calls: Annotated[int, Field(ge=0)] = 0
    attachments: AttachmentSettings = AttachmentSettings()
    max_ongoing: Annotated[int, Field(ge=1)] = 2048
    drain_s: Annotated[float, Field(gt=0)] = 1800


class AllowedServerSettings(Strict):
    """A server of tools that requests may name by its `url`; `connect` is where it really is, if
    elsewhere (`${NAME}` is read from the environment). One that is `own` is this cluster's gateway,
    and is shown the client's own key.
    """

    url: Annotated[str, Field(pattern=r"^https?://")]
    connect: Annotated[str, Field(pattern=r"^(https?://.*)?$")] = ""
    own: bool = False


class ToolServersSettings(Strict):
    """Servers of tools that are called for clients, inside a turn (`type: mcp`, `mcp_servers`).

    None but those of `allow` are spoken to. `steps`: how often the model may call in one turn;
    `call_s` and `list_s`: seconds that a call, and a list of tools, may take.
    """

    allow: tuple[AllowedServerSettings, ...] = ()
    steps: Annotated[int, Field(ge=1, le=100)] = 10
    call_s: Annotated[float, Field(gt=0)] = 120.0
    list_s: Annotated[float, Field(gt=0)] = 10.0


class FailoverSettings(Strict):
    """What is done for a turn whose replica or parser dies, hangs or is drained. Times in seconds.

    It goes on elsewhere at most `moves` times (0: it fails at once), and may wait `patience_s` for
    a place, `alone_s` while no replica is up, `parked_s` where it made room for a more urgent turn.
    A replica that says nothing of a turn for `quiet_s` is asked after it.
    """

    moves: Annotated[int, Field(ge=0)] = 3
    patience_s: Annotated[float, Field(gt=0)] = 60.0
    alone_s: Annotated[float, Field(gt=0)] = 4.0
    parked_s: Annotated[float, Field(gt=0)] = 600.0
    quiet_s: Annotated[float, Field(gt=0)] = 3.0


class RouterSettings(Strict):
    """How replicas are chosen; see `router.router.Settings`. `queue_limit` 0 refuses at once.

    By default some wait: priorities and preemption act on turns that wait alone, and a burst of
    sub-agents is over in the time in which a refused one would come back. Few do: what waits longer
    than a harness waits for its first byte is work for nobody, and is refused while it is cheap.
    `preempt`: where the fleet is full, a running turn is parked for a more urgent one that waits.
    """

    policy: Literal["kv", "round_robin", "least_loaded", "sticky"] = "kv"
    queue_limit: Annotated[int, Field(ge=0)] = 64
    queue_patience_s: Annotated[float, Field(gt=0)] = 30.0
    preempt: bool = True


class StoreSettings(Strict):
    """Where sessions live: `redis` is a URL, "embedded" (a Valkey of our own) or "memory".

    `response_ttl_s`: how long a stored response is kept after it was last used. `ledger_ttl_s`:
    how long the token ids of a reply are kept after a turn last used them. `past_ttl_s`: how long
    a turn can be asked about from every ingress, by its trace, and by the prefix doctor for at most
    four a session; 0 keeps none in the store.
    """

    redis: str = "embedded"
    timeout_s: Annotated[float, Field(gt=0)] = 0.25
    session_ttl_s: Annotated[int, Field(ge=1)] = 7 * 24 * 3600
    response_ttl_s: Annotated[int, Field(ge=1)] = 7 * 24 * 3600
    ledger_ttl_s: Annotated[int, Field(ge=1)] = 7 * 24 * 3600
    past_ttl_s: Annotated[int, Field(ge=0)] = 3600


class ConsoleSettings(Strict):
    """The page at `/console`, which shows what all clients asked and were answered.

    `access`: `this_machine` shows it to browsers on the machine that serves, `anyone` to whoever
    reaches the port. With `redact` no text of a prompt, a reply, a tool's arguments or rows is kept
    for it or leaves the server. Sessions, and `turns` of each, are kept for `keep_s` seconds.
    `tools` is the Serve application of the streaming tools.
    """

    enabled: bool = True
    access: Literal["this_machine", "anyone"] = "this_machine"
    redact: bool = False
    keep_s: Annotated[float, Field(gt=0)] = 6 * 3600
    sessions: Annotated[int, Field(ge=1)] = 5000
    turns: Annotated[int, Field(ge=1)] = 64
    tools: str = "tools"


class SealSettings(Strict):
    """How reasoning is closed that travels through clients (`signature`, `encrypted_content`).

    `secrets`: the first one seals, all of them open; put a new one in front to rotate. They come
    from here, from the lines of `file` and from the words of the environment variable `env`, in
    this order; where none is given the cluster makes one and keeps it in its store. `ttl_s`: how
    long a seal can be opened, without it for ever.
    """

    secrets: tuple[SecretStr, ...] = ()
    file: str = ""
    env: str = "TREADLE_SEAL_SECRETS"
    ttl_s: Annotated[float | None, Field(gt=0)] = None


class AccessSettings(Strict):
    """Who may call. `keys: off` lets everyone in; each key that is shown is a tenant of its own.

    With `keys: required` a caller shows a key that the admin made (`treadle keys add`). The admin
    key comes from the file `admin_file` or the environment variable `admin_env`, where neither is
    set there is no admin surface. Tenants share no prefixes unless `shared_prefixes`. A key that
    was good is not looked up again for `cache_s` seconds, and while the store is away for
    `stale_s`: a revoked key works at most that long. `exposed`: listen beyond this machine without
    keys. `audit_file` takes the audit log, "" the process's log.
    """

    keys: Literal["off", "required"] = "off"
    admin_file: str = ""
    admin_env: str = "TREADLE_ADMIN_KEY"
    shared_prefixes: bool = False
    exposed: bool = False
    cache_s: Annotated[float, Field(gt=0, le=300)] = 10.0
    stale_s: Annotated[float, Field(ge=0, le=3600)] = 300.0
    max_header_bytes: Annotated[int, Field(ge=1024)] = 64 * 2**10
    audit_file: str = ""


class ObserveSettings(Strict):
    """What is told of turns beyond metrics and logs. `traces`: the base URL of an OTLP collector
    ("": what the environment's `OTEL_EXPORTER_OTLP_ENDPOINT` says, if anything). `turns_folder`:
    each turn goes into a file there, its request word for word, for `treadle replay`; "" keeps
    none.
    """

    traces: str = ""
    turns_folder: str = ""


class AppSettings(Strict):
    """The arguments of the Serve application `deployments.app:build`."""

    models: Annotated[tuple[ModelSettings, ...], Field(min_length=1)]
    aliases: tuple[AliasSettings, ...] = ()
    parser: Literal["actor", "inline"] = "actor"
    lanes: Literal["near", "refs"] = "near"
    """How events come from a parser actor of the same node: `near` over a socket, `refs` by Ray
    object refs, as they come from another node in any case."""
    ingress: IngressSettings = IngressSettings()
    tool_servers: ToolServersSettings = ToolServersSettings()
    router: RouterSettings = RouterSettings()
    failover: FailoverSettings = FailoverSettings()
    store: StoreSettings = StoreSettings()
    seals: SealSettings = SealSettings()
    access: AccessSettings = AccessSettings()
    observe: ObserveSettings = ObserveSettings()
    console: ConsoleSettings = ConsoleSettings()

    @model_validator(mode="after")
    def names_are_unique(self) -> AppSettings:
        """No two models answer to the same name."""
        names = [name for m in self.models for name in (m.name, *m.aliases)]
        names += [alias.name for alias in self.aliases]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            msg = f"models: {', '.join(twice)} is the name of more than one model; rename one"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def aliases_are_of_models(self) -> AppSettings:
        """An alias stands for a model that is served, and every profile can be read."""
        served = [model.name for model in self.models]
        for alias in self.aliases:
            if alias.model not in served:
                known = ", ".join(served)
                msg = f"alias {alias.name!r}: no model is called {alias.model!r}; there is {known}"
                raise ValueError(msg)
        for name in (*(m.profile for m in self.models), *(a.profile for a in self.aliases)):
            profiles.load(name)
        return self
