"""End a call of the fake server with an error of ours."""

from __future__ import annotations

from typing import NoReturn

import grpc
from grpc_status import rpc_status

from boardlift.errors import BoardliftError, to_status


def abort(context: grpc.ServicerContext, error: BoardliftError) -> NoReturn:
    """End the call with the status an error stands for."""
    context.abort_with_status(rpc_status.to_status(to_status(error, "testing")))
    raise AssertionError("abort_with_status returned")
