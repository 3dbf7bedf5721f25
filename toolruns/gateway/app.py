"""The gateway as an ASGI app: the calls bound to the official MCP server, without sessions."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.responses import JSONResponse
from starlette.types import Message, Receive, Scope, Send

from toolruns.contract import EXTENSION, TRAJECTORY_META
from toolruns.gateway.caller import Caller
from toolruns.gateway.calls import Calls, Result
from toolruns.gateway.listing import FIXED, listed
from toolruns.gateway.plans import Plans
from toolruns.gateway.resources import read_resource, templates
from toolruns.gateway.spans import TRACE
from toolruns.rows.handles import UnknownHandleError
from turns.errors import TreadleError

SWEEP_EVERY = 30.0
INVALID_PARAMS = -32602
NOT_FOUND = -32002
PRINCIPAL = "treadle.principal"
INSTRUCTIONS = (
    "Tools marked STREAMING return a synopsis of their rows and a handle. Set consume_until to "
    "stop early; PARTIAL means that there is more than was seen."
)

Context = ServerRequestContext[Any, Any]
Authenticate = Callable[[Mapping[str, str]], str | None]
"""From a request's headers (lower case) to the principal who owns what it makes; None refuses."""


def by_bearer(headers: Mapping[str, str]) -> str | None:
    """Every bearer token is its own principal; without one the caller is anonymous."""
    token = headers.get("authorization", "").removeprefix("Bearer ").strip()
    return hashlib.sha256(token.encode()).hexdigest()[:32] if token else "anonymous"


class Gateway:
    """An ASGI app. Mount it anywhere; run it inside `running()`, or let it see the lifespan.

    `authenticate` decides who a request belongs to; handles of one principal are unknown to all
    others. `allowed_hosts` bounds Host and Origin against DNS rebinding (`name:*` is any port),
    None leaves them open.
    """

    def __init__(
        self,
        calls: Calls,
        *,
        authenticate: Authenticate = by_bearer,
        allowed_hosts: list[str] | None = None,
        name: str = "treadle",
        always_load: bool = True,
    ) -> None:
        self.calls = calls
        self.plans = Plans(calls, calls.store)
        self._authenticate = authenticate
        self._tools = listed(list(calls.tools.values()), always_load=always_load)
        self.server: Server[Any] = Server(
            name,
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            get_tool_input_schema=self._schema_of,
        )
        self.server.extensions[EXTENSION] = {"version": 1}
        hosts = allowed_hosts or []
        self._security = TransportSecuritySettings(
            enable_dns_rebinding_protection=allowed_hosts is not None,
            allowed_hosts=hosts,
            allowed_origins=[
                f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")
            ],
        )
        self._manager: StreamableHTTPSessionManager | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve until the block is left; then every stream is ended and closed."""
        self._manager = StreamableHTTPSessionManager(
            self.server, stateless=True, security_settings=self._security
        )
        async with self._manager.run():
            sweeping = asyncio.create_task(self._sweep())
            try:
                yield
            finally:
                sweeping.cancel()
                await self.calls.drain()
                self._manager = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        if scope["type"] != "http":
            return
        if self._manager is None:
            refusal = JSONResponse({"error": "the gateway is not running"}, 503)
            await refusal(scope, receive, send)
            return
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
        principal = self._authenticate(headers)
        if principal is None:
            refusal = JSONResponse(
                {"error": "unknown key; send it as Authorization: Bearer"},
                401,
                {"www-authenticate": "Bearer"},
            )
            await refusal(scope, receive, send)
            return
        await self._manager.handle_request({**scope, PRINCIPAL: principal}, receive, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        async with self.running():
            await send(_done("startup"))
            await receive()
        await send(_done("shutdown"))

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_EVERY)
            with contextlib.suppress(Exception):  # a store that is away must not end the sweeps
                await self.calls.sweep()

    async def _list_tools(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=self._tools)

    async def _call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        caller, arguments = caller_of(ctx), params.arguments or {}

        async def report(progress: float, message: str) -> None:
            await ctx.session.report_progress(progress, None, message)

        try:
            result = await self._run(params.name, arguments, caller, report)
        except TreadleError as error:
            result = Result(error.message, is_error=True)
        return _as_result(result)

    async def _run(
        self, name: str, arguments: dict[str, Any], caller: Caller, report: Any
    ) -> Result:
        match name:
            case "stream_continue":
                return await self.calls.resume(arguments, caller, report)
            case "stream_rows":
                return Result(await self.calls.drilldown.rows(arguments, caller))
            case "stream_query":
                return Result(await self.calls.drilldown.query(arguments, caller))
            case "stream_plan":
                return await self.plans.run(arguments, caller, report)
            case "stream_close":
                return await self.calls.close(arguments, caller)
            case _ if name in self.calls.tools:
                return await self.calls.stream(name, arguments, caller, report)
            case _:
                message = f"unknown tool {name[:100]!r}"
                raise MCPError(INVALID_PARAMS, message)

    async def _list_resources(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[])

    async def _list_templates(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=templates())

    async def _read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        try:
            text = await read_resource(uri, caller_of(ctx), self.calls.drilldown)
        except UnknownHandleError as error:
            raise MCPError(NOT_FOUND, error.message, {"uri": uri}) from None
        contents = types.TextResourceContents(uri=uri, text=text, mime_type="application/json")
        return types.ReadResourceResult(contents=[contents])

    def _schema_of(self, name: str) -> Mapping[str, Any] | None:
        if name in FIXED:
            return FIXED[name][1]
        tool = self.calls.tools.get(name)
        return tool.schema() if tool else None


def caller_of(ctx: Context) -> Caller:
    """Who calls, as `name/version`. Without sessions a legacy client says it in its user agent."""
    request = ctx.request
    headers = request.headers if request is not None else {}
    principal = request.scope.get(PRINCIPAL, "local") if request is not None else "local"
    params = ctx.session.client_params
    info = params.client_info if params is not None else None
    client = f"{info.name}/{info.version}" if info is not None and info.name else ""
    return Caller(
        principal=principal,
        client=client or headers.get("user-agent", ""),
        modern=ctx.protocol_version in MODERN_PROTOCOL_VERSIONS,
        version=ctx.protocol_version,
        meta=_traced(headers) | dict(ctx.meta or {}),
    )


def _traced(headers: Mapping[str, str]) -> dict[str, str]:
    """The trace of an HTTP request, where its call does not say one itself (`_meta`)."""
    return {name: headers[name] for name in TRACE if name in headers}


def _as_result(result: Result) -> types.CallToolResult:
    """One text block. The record goes into `_meta`, where no harness shows it to the model."""
    view = {k: v for k, v in result.view.items() if k not in {"head", "sample", "columns"}}
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=result.text)],
        is_error=result.is_error,
        _meta={TRAJECTORY_META: view} if view else None,
    )


def _done(what: str) -> Message:
    return {"type": f"lifespan.{what}.complete"}
