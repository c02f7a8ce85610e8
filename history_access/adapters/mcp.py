"""The tools over MCP, the Model Context Protocol: over HTTP and over stdio, for one turn each (extra `mcp`).

Who asks is said by a token (`turn_tokens`), never by an argument. It is looked at again in every request, and
nothing that one request knows is kept for another.
"""

import logging
from collections.abc import Awaitable, Callable, Iterator, MutableMapping, Sequence
from typing import Any, TypeVar

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from history_access.adapters import from_extra
from history_access.adapters.turn_tokens import TokenError, turn_of
from history_access.quoting import wire_text
from history_access.tools import Toolset, toolset_for
from history_access.tools.running import FAILED

with from_extra("mcp"):
    import anyio
    import anyio.to_thread
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from mcp.server.transport_security import TransportSecuritySettings
    from mcp.shared.exceptions import MCPError
    from mcp.types import (
        INTERNAL_ERROR,
        INVALID_REQUEST,
        CallToolRequestParams,
        CallToolResult,
        ListToolsResult,
        TextContent,
        Tool,
    )
    from starlette.responses import JSONResponse, Response

logger = logging.getLogger("history_access")

MOST_AT_ONCE = 10
"""How many requests of one app, or one process over stdio, are in the database at a time; others wait."""

MOST_BYTES = 256 * 1024
"""How long the body of a request may be: arguments are short."""

_UNAUTHORIZED = JSONResponse(
    {"error": "invalid_token"},
    status_code=401,
    headers={"WWW-Authenticate": 'Bearer realm="history access", error="invalid_token"'},
)
_ONLY_POST = Response(status_code=405, headers={"Allow": "POST"})
_FAILED = JSONResponse({"error": "history_unavailable"}, status_code=503)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]
Result = TypeVar("Result")


def server_for(token: str) -> Server[Any]:
    """The tools of the turn that a token names, as a server of the SDK's for whatever transport.

    Every list and every call looks at the token again: where it no longer holds, the answer is an error of
    the protocol, in one sentence.
    """
    return _server(_Threads(), lambda: turn_of(token))


def http_app(*, hosts: Sequence[str] | None = None) -> ASGIApp:
    """An ASGI app that serves MCP over streamable HTTP at whatever path it is put; it needs no lifespan.

    Each request names its turn by `Authorization: Bearer TOKEN`. Without a token that holds it is answered
    401, the same for every reason. Nothing is kept between requests: there are no sessions to take over.
    `hosts` are the names under which it is reached, `ALLOWED_HOSTS` where they are left out; other hosts are
    refused, and so are pages of other origins. An ImproperlyConfigured where these are no whole names.
    """
    threads, security = _Threads(), _security(hosts)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise ValueError(f"MCP is served over HTTP, not over {scope['type']}")
        answer = await answering(scope)
        await answer(scope, receive, send)

    async def answering(scope: Scope) -> ASGIApp:
        token = _bearer(scope)
        try:
            turn_id = await threads.run(lambda: turn_of(token))
        except TokenError:
            return _UNAUTHORIZED
        except Exception:  # the database is away, or the platform's authority fails
            logger.exception("The turn of a request over MCP could not be looked up.")
            return _FAILED
        return serving(turn_id) if scope["method"] == "POST" else _ONLY_POST

    def serving(turn_id: Any) -> ASGIApp:
        manager = StreamableHTTPSessionManager(
            _server(threads, lambda: turn_id),
            json_response=True,
            stateless=True,
            security_settings=security,
            max_request_body_size=MOST_BYTES,
        )

        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            async with manager.run():
                await manager.handle_request(scope, receive, send)

        return serve

    return app


def serve_stdio(token: str) -> None:
    """Serve the turn that a token names over this process's standard input and output, until the input ends.

    Meanwhile whatever else is written to standard output goes to standard error. A client that has gone is no
    failure.
    """
    try:
        anyio.run(_serve_stdio, server_for(token))
    except* BrokenPipeError:
        logger.info("The client of MCP over stdio has gone.")


async def _serve_stdio(server: Server[Any]) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _server(threads: "_Threads", turn_now: Callable[[], Any]) -> Server[Any]:
    """`turn_now` answers with the key of the turn that a request is for, or with a TokenError."""

    async def list_tools(context: Any, asked: Any) -> ListToolsResult:
        found = await _answer(threads, lambda: toolset_for(turn_now()).definitions("mcp"))
        return ListToolsResult(tools=[Tool.model_validate(one) for one in found])

    async def call_tool(context: Any, asked: CallToolRequestParams) -> CallToolResult:
        # What is offered is for the list. A call is checked when it runs, whatever was offered.
        result = await _answer(
            threads, lambda: Toolset(turn_now(), ()).call(asked.name, asked.arguments or {})
        )
        # No structured content: clients would give a model both, twice the tokens, and what is quoted in it
        # would not be escaped as it is in the text.
        text = TextContent(text=wire_text(result))
        return CallToolResult(content=[text], is_error=result["kind"] == "error")

    return Server(
        "history-access",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        get_tool_input_schema=lambda name: None,  # no argument goes into a header: spare the SDK a listing
    )


async def _answer(threads: "_Threads", work: Callable[[], Result]) -> Result:
    try:
        return await threads.run(work)
    except TokenError as error:
        raise MCPError(INVALID_REQUEST, str(error)) from None
    except Exception:  # the SDK would tell the client what it says
        logger.exception("A request over MCP failed; nothing was given.")
        raise MCPError(INTERNAL_ERROR, FAILED) from None


class _Threads:
    """Runs database work beside the event loop, to its end even where the request is given up meanwhile."""

    def __init__(self) -> None:
        self._limiter = anyio.CapacityLimiter(MOST_AT_ONCE)

    async def run(self, work: Callable[[], Result]) -> Result:
        return await anyio.to_thread.run_sync(_closing_connections, work, limiter=self._limiter)


def _closing_connections(work: Callable[[], Result]) -> Result:
    """The thread ends unseen, or serves something else: nobody would close its connections."""
    try:
        return work()
    finally:
        connections.close_all()


def _bearer(scope: Scope) -> str | None:
    """The token of a request; None without exactly one."""
    given = [value for name, value in scope["headers"] if name == b"authorization"]
    if len(given) != 1:
        return None
    scheme, _, token = given[0].decode("latin-1").partition(" ")
    return token.strip(" ") if scheme.lower() == "bearer" else None


def _security(hosts: Sequence[str] | None) -> TransportSecuritySettings:
    """The SDK's guard against rebound names and foreign pages, for these hosts on any port."""
    named = list(_allowed_hosts() if hosts is None else hosts)
    for host in named:
        if host.startswith((".", "*")):
            setting = "ALLOWED_HOSTS" if hosts is None else "hosts"
            raise ImproperlyConfigured(
                f"{setting}: {host!r} is no whole name of a host. Name those of MCP: http_app(hosts=[...])."
            )
    origins = [f"{scheme}://{host}" for scheme in ("https", "http") for host in named]
    return TransportSecuritySettings(
        allowed_hosts=list(_on_any_port(named)), allowed_origins=list(_on_any_port(origins))
    )


def _allowed_hosts() -> Sequence[str]:
    if settings.DEBUG and not settings.ALLOWED_HOSTS:  # what Django allows then
        return ("localhost", "127.0.0.1", "[::1]")
    return settings.ALLOWED_HOSTS


def _on_any_port(names: Sequence[str]) -> Iterator[str]:
    for name in names:
        yield from (name, f"{name}:*")
