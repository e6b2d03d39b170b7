"""Every status code maps to one exception, and an error survives the way to its status and back."""

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
