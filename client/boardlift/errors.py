"""Errors of boardlift: one class per thing the caller can do about it, each with a stable reason.

The map from exception to gRPC status and back exists here, once; servers abort with `to_status` and clients raise
`from_rpc_error`. A status carries exactly one `google.rpc.ErrorInfo` with the reason and all variable text as metadata.
"""

from __future__ import annotations

from collections.abc import Mapping

import grpc
from google.protobuf import any_pb2
from google.protobuf.message import Message
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_status import rpc_status

DOMAIN = "boardlift"


class BoardliftError(Exception):
    """Root of all errors that boardlift raises on purpose.

    Attributes:
        reason: Stable UPPER_SNAKE code, at most 63 characters.
        remedy: One thing to do about it; may be empty.
        metadata: All variable parts of the message by name.
        retryable: True when the same call may succeed later.
    """

    code: grpc.StatusCode = grpc.StatusCode.INTERNAL
    default_reason = "INTERNAL"
    retryable = False

    def __init__(
        self, message: str, *, reason: str = "", remedy: str = "", metadata: Mapping[str, str] | None = None
    ) -> None:
        """Keep the parts; `str()` gives the message and, when there is one, the remedy."""
        super().__init__(message)
        self.message = message
        self.reason = reason or self.default_reason
        self.remedy = remedy
        self.metadata = dict(metadata or {})

    def __str__(self) -> str:
        text = f"{self.reason}: {self.message}"
        return f"{text} Remedy: {self.remedy}" if self.remedy else text


class InvalidInputError(BoardliftError):
    """The request itself is wrong; the same request never succeeds."""

    code = grpc.StatusCode.INVALID_ARGUMENT
    default_reason = "INVALID_INPUT"


class NotFoundError(BoardliftError):
    """Something named in the request does not exist."""

    code = grpc.StatusCode.NOT_FOUND
    default_reason = "NOT_FOUND"


class AlreadyExistsError(BoardliftError):
    """The chosen name is taken."""

    code = grpc.StatusCode.ALREADY_EXISTS
    default_reason = "ALREADY_EXISTS"


class PreconditionError(BoardliftError):
    """Something must change first: a missing artifact, an absent toolchain, a job in another state."""

    code = grpc.StatusCode.FAILED_PRECONDITION
    default_reason = "FAILED_PRECONDITION"


class ConflictError(BoardliftError):
    """A race was lost; reading again and repeating may succeed."""

    code = grpc.StatusCode.ABORTED
    default_reason = "CONFLICT"
    retryable = True


class CancelledError(BoardliftError):
    """The work was stopped as asked."""

    code = grpc.StatusCode.CANCELLED
    default_reason = "CANCELLED"


class DeadlineError(BoardliftError):
    """Time ran out."""

    code = grpc.StatusCode.DEADLINE_EXCEEDED
    default_reason = "DEADLINE_EXCEEDED"


class ExhaustedError(BoardliftError):
    """No room: disk, memory, quota or slots."""

    code = grpc.StatusCode.RESOURCE_EXHAUSTED
    default_reason = "EXHAUSTED"
    retryable = True


class UnavailableError(BoardliftError):
    """A part of the machinery can't be reached right now."""

    code = grpc.StatusCode.UNAVAILABLE
    default_reason = "UNAVAILABLE"
    retryable = True


class UnauthenticatedError(BoardliftError):
    """No or wrong credentials."""

    code = grpc.StatusCode.UNAUTHENTICATED
    default_reason = "UNAUTHENTICATED"


class PermissionDeniedError(BoardliftError):
    """The credentials don't allow this."""

    code = grpc.StatusCode.PERMISSION_DENIED
    default_reason = "PERMISSION_DENIED"


class UnsupportedError(BoardliftError):
    """This server can't do that."""

    code = grpc.StatusCode.UNIMPLEMENTED
    default_reason = "UNSUPPORTED"


class DataLossError(BoardliftError):
    """Stored bytes don't match their digest."""

    code = grpc.StatusCode.DATA_LOSS
    default_reason = "DATA_LOSS"


class InternalError(BoardliftError):
    """A fault of ours."""

    code = grpc.StatusCode.INTERNAL
    default_reason = "INTERNAL"


_CLASSES: dict[grpc.StatusCode, type[BoardliftError]] = {
    cls.code: cls
    for cls in (
        InvalidInputError,
        NotFoundError,
        AlreadyExistsError,
        PreconditionError,
        ConflictError,
        CancelledError,
        DeadlineError,
        ExhaustedError,
        UnavailableError,
        UnauthenticatedError,
        PermissionDeniedError,
        UnsupportedError,
        DataLossError,
        InternalError,
    )
}
# The two codes nobody raises on purpose still have a meaning for callers.
STATUS_TO_EXCEPTION: dict[grpc.StatusCode, type[BoardliftError]] = {
    **_CLASSES,
    grpc.StatusCode.OUT_OF_RANGE: InvalidInputError,
    grpc.StatusCode.UNKNOWN: InternalError,
}


# What gRPC's texts contain -> what it means, the most telling first.
_CAUSES = (
    ("DNS resolution failed", "this name is not known"),
    ("lookup failed", "this name is not known"),
    ("WRONG_VERSION_NUMBER", "it does not speak TLS; http:// in front of the address does without"),
    ("CERTIFICATE_VERIFY_FAILED", "its certificate is not signed by a CA that is trusted here"),
    ("Hostname Verification", "its certificate is for another name"),
    ("andshake", "the TLS handshake fails"),
    ("Connection refused", "the connection is refused"),
    ("Broken pipe", "the connection broke; does it want TLS (https://)?"),
    ("Socket closed", "the connection broke; does it want TLS (https://)?"),
    ("timed out", "the connection timed out"),
    ("unreachable", "there is no route to it"),
)


def to_status(error: BoardliftError, service: str = "") -> status_pb2.Status:
    """Build the `google.rpc.Status` for an error, with one ErrorInfo in the domain `<service>.boardlift`."""
    domain = f"{service}.{DOMAIN}" if service else DOMAIN
    metadata = {**error.metadata, **({"remedy": error.remedy} if error.remedy else {})}
    info = error_details_pb2.ErrorInfo(reason=error.reason[:63], domain=domain, metadata=metadata)
    details = [_pack(info)]
    if isinstance(error, InvalidInputError):
        field = error.metadata.get("field", "")
        violation = error_details_pb2.BadRequest.FieldViolation(field=field, description=error.message)
        details.append(_pack(error_details_pb2.BadRequest(field_violations=[violation])))
    if error.retryable:
        retry = error_details_pb2.RetryInfo()
        retry.retry_delay.seconds = 1
        details.append(_pack(retry))
    code = code_pb2.Code.Value(error.code.name)
    return status_pb2.Status(code=code, message=error.message, details=details)


def from_rpc_error(error: grpc.Call, address: str = "") -> BoardliftError:
    """Turn a failed call (an RpcError that is a Call) into the exception it means; reason and remedy survive.

    Args:
        error: The failed call.
        address: Who was called; said where it was not the server that answered but gRPC itself.
    """
    code = error.code()
    cls = STATUS_TO_EXCEPTION.get(code, InternalError)
    try:
        status = rpc_status.from_call(error)
    except ValueError:
        status = None  # details of another status, for example by a proxy: the bare code still tells what to do
    message = error.details() or code.name
    for detail in status.details if status else ():
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info):
            metadata = dict(info.metadata)
            return cls(message, reason=info.reason, remedy=metadata.pop("remedy", ""), metadata=metadata)
    if address and cls is UnavailableError:
        return _unreachable(address, message)
    if address and cls is UnsupportedError:
        return _other_service(address, message)
    if address and cls is DeadlineError:
        return cls(f"{address} has not answered in time.", metadata={"address": address})
    return cls(message)


def _unreachable(address: str, details: str) -> UnavailableError:
    """Say who does not answer, and in a word why; gRPC's own text names resolvers and sub-channels."""
    cause = next((words for mark, words in _CAUSES if mark in details), "the connection broke")
    return UnavailableError(
        f"Nothing answers at {address}: {cause}.",
        remedy=f"Start what should listen on {address}, or correct the address.",
        metadata={"address": address, "grpc": details[:500]},
    )


def _other_service(address: str, details: str) -> UnsupportedError:
    """Say that somebody answers who knows no such call: gRPC itself says only that a method is not found."""
    return UnsupportedError(
        f"What answers at {address} does not know this call.",
        reason="WRONG_SERVICE",
        remedy="Correct the address if another service listens there, or update it if it is of an older release.",
        metadata={"address": address, "grpc": details[:500]},
    )


def _pack(message: Message) -> any_pb2.Any:
    packed = any_pb2.Any()
    packed.Pack(message)
    return packed
