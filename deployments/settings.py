"""Settings: what a cluster's YAML may say, checked before anything is started."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Strict(BaseModel):
    """An unknown key is an error: a misspelt setting must not be silently without effect."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class EngineSettings(Strict):
    """Which engine runs a model, how many replicas of it, and what they may use.

    `options` goes to the engine as it is: see `ScriptedSettings` and `VllmSettings`.
    """

    kind: Literal["scripted", "vllm"] = "scripted"
    replicas: int = Field(1, ge=1)
    cpus: float = Field(0, ge=0)
    gpus: float = Field(0, ge=0)
    max_ongoing: int = Field(512, ge=1)
    drain_s: float = Field(1800, gt=0)
    options: dict[str, Any] = Field(default_factory=dict)


class PromptSettingsModel(Strict):
    """What may be done to a prompt before it is tokenised."""

    strip_billing_header: bool = True
    hoist_system: bool = True


class ModelSettings(Strict):
    """One served model. `folder` may be `scripted:` (built on the fly, no model needed)."""

    name: str
    folder: str = "scripted:"
    family: str = "auto"
    aliases: tuple[str, ...] = ()
    display_name: str = ""
    context_window: int | None = Field(None, ge=1)
    max_output: int | None = Field(None, ge=1)
    parsers: int = Field(1, ge=1, le=8)
    prompt: PromptSettingsModel = Field(default_factory=PromptSettingsModel)
    engine: EngineSettings = Field(default_factory=EngineSettings)


class IngressSettings(Strict):
    """The HTTP side. `keepalive_s`: a silent stream gets a keep-alive event after that long."""

    replicas: int = Field(1, ge=1)
    keepalive_s: float = Field(10.0, gt=0, le=15)
    max_body_bytes: int = Field(64 * 2**20, ge=1024)
    max_ongoing: int = Field(2048, ge=1)
    drain_s: float = Field(1800, gt=0)


class RouterSettings(Strict):
    """How replicas are chosen; see `router.router.Settings`. `queue_limit` 0 refuses at once."""

    policy: Literal["kv", "round_robin", "least_loaded", "sticky"] = "kv"
    queue_limit: int = Field(0, ge=0)
    queue_patience_s: float = Field(30.0, gt=0)


class StoreSettings(Strict):
    """Where sessions live: `redis` is a URL, "embedded" (a Valkey of our own) or "memory"."""

    redis: str = "embedded"
    timeout_s: float = Field(0.25, gt=0)
    session_ttl_s: int = Field(7 * 24 * 3600, ge=1)


class AppSettings(Strict):
    """The arguments of the Serve application `deployments.app:build`."""

    models: tuple[ModelSettings, ...] = Field(min_length=1)
    parser: Literal["actor", "inline"] = "actor"
    ingress: IngressSettings = Field(default_factory=IngressSettings)
    router: RouterSettings = Field(default_factory=RouterSettings)
    store: StoreSettings = Field(default_factory=StoreSettings)

    @model_validator(mode="after")
    def names_are_unique(self) -> AppSettings:
        """No two models answer to the same name."""
        names = [name for m in self.models for name in (m.name, *m.aliases)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            msg = f"models: {', '.join(twice)} is the name of more than one model; rename one"
            raise ValueError(msg)
        return self
