"""Every status code maps to one exception, and an error survives the way to its status and back."""

from types import SimpleNamespace

import grpc
import pytest
from google.rpc import error_details_pb2

from boardlift import errors


def test_every_failing_status_code_has_an_exception():
    missing = [c for c in grpc.StatusCode if c is not grpc.StatusCode.OK and c not in errors.STATUS_TO_EXCEPTION]
    assert missing == []


@pytest.mark.parametrize("cls", sorted(set(errors.STATUS_TO_EXCEPTION.values()), key=lambda c: c.__name__))
def test_status_has_exactly_one_error_info_with_the_reason(cls):
    status = errors.to_status(cls("no", reason="WHY", remedy="do it", metadata={"node": "a"}), "compiler")
    infos = []
    for detail in status.details:
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info):
            infos.append(info)
    assert [(i.reason, i.domain, dict(i.metadata)) for i in infos] == [
        ("WHY", "compiler.boardlift", {"node": "a", "remedy": "do it"})
    ]


@pytest.mark.parametrize(
    ("details", "cause"),
    [
        (
            "failed to connect; last error: UNKNOWN: ipv4:127.0.0.1:1: Connection refused (111)",
            "refused",
        ),
        ("DNS resolution failed for nowhere:7400: C-ares status is not ARES_SUCCESS", "this name is not known"),
        ("errors resolving x:1: [address lookup failed for x:1: Domain name not found]", "this name is not known"),
        ("Ssl handshake failed (TSI_PROTOCOL_FAILURE): SSL_ERROR_SSL: WRONG_VERSION_NUMBER", "does not speak TLS"),
        ("whatever else", "the connection broke"),
    ],
)
def test_what_grpc_says_of_an_outage_becomes_who_and_why(details, cause):
    call = SimpleNamespace(
        code=lambda: grpc.StatusCode.UNAVAILABLE, details=lambda: details, trailing_metadata=lambda: ()
    )
    error = errors.from_rpc_error(call, "lab:7400")
    assert isinstance(error, errors.UnavailableError) and cause in error.message and "lab:7400" in error.message
    assert "ipv4" not in error.message and error.metadata["grpc"] == details and "lab:7400" in error.remedy


def test_another_service_at_the_address_is_named_and_not_gRPCs_words():
    from boardlift import Client
    from boardlift.testing import FakeServer
    from boardlift.v1 import job_pb2

    with FakeServer() as server, Client(server.address) as client:
        method = client._channel.unary_unary("/boardlift.v1.JobService/NoSuchCall")
        with pytest.raises(
            errors.UnsupportedError, match=f"WRONG_SERVICE: What answers at {server.address} does"
        ) as it:
            client._call(method, job_pb2.GetJobRequest().SerializeToString())
    assert it.value.remedy and "Method not found" not in str(it.value)
