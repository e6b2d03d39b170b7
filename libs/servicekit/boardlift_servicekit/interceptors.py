"""The one server interceptor: who calls, log context, errors to status, access log."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import ContextVar
from typing import Any

import grpc
import structlog
from boardlift.errors import BoardliftError, InternalError, to_status

from boardlift_servicekit.access import ANONYMOUS, Principal, TokenTable, authorize
from boardlift_servicekit.watched_file import WatchedFile

_LOG = structlog.get_logger()
_CALLER: ContextVar[Principal] = ContextVar("caller", default=ANONYMOUS)
_CLIENT: ContextVar[str] = ContextVar("client", default="")
_ONLY_STORED: ContextVar[bool] = ContextVar("only_stored", default=False)
ONLY_STORED = ("x-only-stored", "1")
"""Metadata of a call that wants a stored result or none: nothing is started for it."""
_OPEN = ("/grpc.health.v1.", "/grpc.reflection.")
_CONTEXT_KEYS = {"x-job-id": "job", "x-stage": "stage", "x-variant": "variant", "x-board": "board"}


class CallInterceptor(grpc.aio.ServerInterceptor):  # type: ignore[misc]  # grpc.aio has no type information
    """Authenticates, binds log context, and turns every exception into a status with one ErrorInfo."""

    def __init__(self, service: str, tokens: WatchedFile[TokenTable] | None) -> None:
        """Serve as `service`; without tokens every caller is anonymous and may do everything."""
        self._service = service
        self._tokens = tokens

    async def intercept_service(self, continuation: Callable[..., Awaitable[Any]], details: Any) -> Any:
        """Wrap the handler, whichever of the four kinds it is."""
        handler = await continuation(details)
        if handler is None or details.method.startswith(_OPEN):
            return handler
        metadata = dict(details.invocation_metadata)
        tokens = self._tokens.value if self._tokens is not None else None
        call = _Call(self._service, tokens, details.method, metadata)
        if handler.response_streaming:
            inner = handler.stream_stream if handler.request_streaming else handler.unary_stream
            make = (
                grpc.stream_stream_rpc_method_handler
                if handler.request_streaming
                else grpc.unary_stream_rpc_method_handler
            )
            return make(call.streaming(inner), handler.request_deserializer, handler.response_serializer)
        inner = handler.stream_unary if handler.request_streaming else handler.unary_unary
        make = (
            grpc.stream_unary_rpc_method_handler if handler.request_streaming else grpc.unary_unary_rpc_method_handler
        )
        return make(call.unary(inner), handler.request_deserializer, handler.response_serializer)


class _Call:
    """One call: entered before the handler, left with an access log line or a status."""

    def __init__(self, service: str, tokens: TokenTable | None, method: str, metadata: dict[str, Any]) -> None:
        self._service, self._tokens, self._method, self._metadata = service, tokens, method, metadata

    def unary(self, inner: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def handle(request: Any, context: Any) -> Any:
            start = time.monotonic()
            try:
                self._enter()
                answer = await inner(request, context)
            except BoardliftError as error:
                await self._abort(context, error, start)
            except Exception as error:  # noqa: BLE001 - the outermost boundary: the caller gets INTERNAL, we the trace
                await self._abort(context, self._unexpected(error), start)
            else:
                self._leave("OK", start)
                return answer

        return handle

    def streaming(self, inner: Callable[..., AsyncIterator[Any]]) -> Callable[..., AsyncIterator[Any]]:
        async def handle(request: Any, context: Any) -> AsyncIterator[Any]:
            start = time.monotonic()
            try:
                self._enter()
                async for answer in inner(request, context):
                    yield answer
            except BoardliftError as error:
                await self._abort(context, error, start)
            except Exception as error:  # noqa: BLE001 - as above
                await self._abort(context, self._unexpected(error), start)
            else:
                self._leave("OK", start)

        return handle

    def _enter(self) -> None:
        principal: Principal = ANONYMOUS
        if self._tokens is not None:
            principal = self._tokens.authenticate(str(self._metadata.get("authorization", "")))
            authorize(principal, self._method)
        _CALLER.set(principal)
        _CLIENT.set(str(self._metadata.get("x-client-name", ""))[:60])
        _ONLY_STORED.set(self._metadata.get(ONLY_STORED[0]) == ONLY_STORED[1])
        bound = {name: str(self._metadata[key]) for key, name in _CONTEXT_KEYS.items() if key in self._metadata}
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(
            request_id=str(self._metadata.get("x-request-id") or uuid.uuid4().hex), principal=principal.name, **bound
        )

    def _leave(self, code: str, start: float, **more: str) -> None:
        name = self._method.rpartition("/")[2]
        level = _LOG.debug if code == "OK" and name.startswith(("Get", "List", "Find")) else _LOG.info
        level("call", method=name, code=code, seconds=round(time.monotonic() - start, 4), **more)

    def _unexpected(self, error: Exception) -> InternalError:
        _LOG.error("call failed unexpectedly", method=self._method, exc_info=error)
        request_id = str(structlog.contextvars.get_contextvars().get("request_id", ""))
        return InternalError(
            "The server failed; its log has the details.",
            remedy="Report the request id with the server's log.",
            metadata={"request_id": request_id, "exception": type(error).__name__},
        )

    async def _abort(self, context: Any, error: BoardliftError, start: float) -> None:
        self._leave(error.code.name, start, reason=error.reason)
        status = to_status(error, self._service)
        await context.abort(
            error.code, error.message, trailing_metadata=(("grpc-status-details-bin", status.SerializeToString()),)
        )


def current_principal() -> str:
    """Name of the caller of the current request; "anonymous" outside one."""
    return _CALLER.get().name


def current_submitter() -> str:
    """Whose turn a job takes: the token's name; where there are no tokens, what the client calls itself."""
    principal = _CALLER.get()
    return principal.name if principal is not ANONYMOUS else _CLIENT.get() or principal.name


def wants_only_stored() -> bool:
    """Tell whether the caller of the current request wants a stored result only."""
    return _ONLY_STORED.get()


def caller_is_only_board() -> bool:
    """Tell whether the caller of the current request is a board and nothing more: then it speaks for itself alone."""
    return _CALLER.get().scopes == {"board"}


def caller_is_admin() -> bool:
    """Tell whether the caller of the current request may do everything, also to what belongs to others."""
    return "admin" in _CALLER.get().scopes
