"""Settings of the tools' application: what a cluster's YAML may say about streaming tools."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from deployments.settings import AccessSettings, Strict


class ToolSettings(Strict):
    """The arguments of the Serve application `deployments.tools:build`.

    `tools` are as `toolruns.gateway.declared` reads them; beside the environment's names,
    `${CHECKOUT}` is this checkout. `folder` is where rows are kept, "" a directory of this cluster.
    `book` says who owns which handle: "folder" beside the rows, or a Redis URL. `timeouts` maps
    patterns of a client's `name/version` to the seconds that it waits for a tool. `decisions`: the
    model that made a call is asked while it runs, through the ingress of the application `models`.
    `inherit`: a call gets no more than the session that made it has left, as that ingress knows it.
    `traces`: the base URL of an OTLP collector that is told every run ("": what the environment's
    OTEL_EXPORTER_OTLP_ENDPOINT says).
    `access` is as for the models; keys are those that the application `models` knows.
    """

    tools: Annotated[tuple[dict[str, Any], ...], Field(min_length=1)]
    folder: str = ""
    book: str = "folder"
    replicas: Annotated[int, Field(ge=1)] = 1
    cpus: Annotated[float, Field(ge=0)] = 0
    max_ongoing: Annotated[int, Field(ge=1)] = 256
    drain_s: Annotated[float, Field(gt=0)] = 60
    streams_per_owner: Annotated[int, Field(ge=1)] = 8
    drilldowns_at_once: Annotated[int, Field(ge=1)] = 2
    allowed_hosts: tuple[str, ...] = ()
    always_load: bool = True
    decisions: Literal["off", "on_demand", "automatic"] = "off"
    inherit: bool = True
    traces: str = ""
    models: str = "treadle"
    access: AccessSettings = AccessSettings()
    timeouts: Annotated[dict[str, float], Field(default_factory=dict)]

    @model_validator(mode="after")
    def replicas_share_their_rows(self) -> ToolSettings:
        """Rows and owners that several replicas must find cannot lie with one of them."""
        if self.replicas > 1 and (not self.folder or self.book == "folder"):
            msg = (
                "replicas above 1 need `book`, a Redis URL, and `folder`, a directory that all of "
                "them see"
            )
            raise ValueError(msg)
        return self
