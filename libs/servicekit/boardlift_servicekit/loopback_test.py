import pytest

from boardlift_servicekit.loopback import is_loopback


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1:1", True),
        ("[::1]:1", True),
        ("localhost:1", True),
        ("unix:/x", True),
        ("ipv4:127.0.0.1:1", True),
        ("ipv6:[::1]:1", True),
        ("0.0.0.0:1", False),
        ("[::]:1", False),
        ("10.0.0.1:1", False),
        ("ipv4:10.0.0.1:1", False),
        ("ipv6:[2001:db8::1]:1", False),
        ("ipv4:10.0.0.1:1,127.0.0.1:1", False),
        ("example:1", False),
        ("localhost.example:1", False),
    ],
)
def test_loopback(address, expected):
    assert is_loopback(address) is expected
