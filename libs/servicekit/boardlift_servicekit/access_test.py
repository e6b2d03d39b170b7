import pytest
from boardlift.errors import PermissionDeniedError

from boardlift_servicekit.access import Principal, authorize


@pytest.mark.parametrize(
    ("method", "scopes"),
    [
        ("JobService/GetJob", {"read", "write", "admin"}),
        ("JobService/CreateJob", {"write", "admin"}),
        ("JobService/PlanJob", {"write", "admin"}),  # it stores a model that comes along, and has the dataset checked
        ("TransformService/PlanTransform", {"read", "write", "admin"}),
        ("BoardService/RegisterBoard", {"board", "admin"}),
        ("ArtifactService/UploadArtifact", {"board", "write", "admin"}),
    ],
)
def test_who_may_call_what(method, scopes):
    for scope in ("read", "write", "admin", "board"):
        principal = Principal("ann", frozenset({scope}))
        if scope in scopes:
            authorize(principal, f"/boardlift.v1.{method}")
            continue
        with pytest.raises(PermissionDeniedError) as caught:
            authorize(principal, f"/boardlift.v1.{method}")
        assert caught.value.reason == "SCOPE_MISSING"
