from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading
from typing import Any

import pytest
from boardlift.errors import BoardliftError, InvalidInputError, UnavailableError

from boardlift_orchestrator import dial_address
from boardlift_orchestrator.dial_address import (
    DialRules,
    find_endpoint,
    is_allowed,
    peer_address,
    read_networks,
    split_address,
)

PLAIN = DialRules(plain_anywhere=True)


def reason(address: str, peer: str, rules: DialRules) -> str:
    with pytest.raises(BoardliftError) as caught:
        asyncio.run(find_endpoint(address, peer, rules))
    assert caught.value.remedy
    return str(caught.value.reason)


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        ("ipv4:192.0.2.7:5061", "192.0.2.7"),
        ("ipv6:%5B::1%5D:5061", "::1"),
        ("ipv6:[fe80::1%25eth0]:5061", "fe80::1"),
        ("ipv6:[::ffff:192.0.2.7]:5061", "192.0.2.7"),
        ("unix:/run/agent.sock", ""),
        ("unix:", ""),
    ],
)
def test_a_callers_address_is_read(peer: str, address: str) -> None:
    assert peer_address(peer) == address


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("192.0.2.7:7403", ("192.0.2.7", 7403)),
        ("x5.lab:1", ("x5.lab", 1)),
        ("unix:1", ("unix", 1)),  # a host of that name: it is resolved like any other, never taken for a scheme
        ("[2001:db8::7]:65535", ("2001:db8::7", 65535)),
    ],
)
def test_host_and_port_pass(address: str, parts: tuple[str, int]) -> None:
    assert split_address(address) == parts


@pytest.mark.parametrize(
    "address",
    [
        "",
        ":7403",
        "192.0.2.7",
        "192.0.2.7:0",
        "192.0.2.7:65536",
        "192.0.2.7:٣",
        "unix:/run/docker.sock",
        "dns:///x5:7403",
        "http://x5:80",
        "x5/y:80",
        "2001:db8::7:7403",
        "[fe80::1%eth0]:7403",
        "x5\n:7403",
        f"{'a' * 254}:7403",
    ],
)
def test_nothing_else_passes(address: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        split_address(address)
    assert caught.value.reason == "DIAL_ADDRESS_INVALID"


@pytest.mark.parametrize(
    ("ip", "peer", "networks", "allowed"),
    [
        ("192.0.2.7", "192.0.2.7", (), True),
        ("192.0.2.8", "192.0.2.7", (), False),
        ("192.0.2.8", "172.17.0.1", ("192.0.2.0/24",), True),
        ("127.0.0.1", "192.0.2.7", (), False),
        ("127.0.0.1", "127.0.0.1", (), True),
        ("127.0.0.1", "::1", (), True),
        ("127.0.0.1", "", (), False),
        ("169.254.169.254", "192.0.2.7", (), False),
        ("0.0.0.0", "192.0.2.7", ("0.0.0.0/0",), False),  # noqa: S104
        ("224.0.0.1", "192.0.2.7", ("0.0.0.0/0",), False),
        ("2001:db8::7", "192.0.2.7", ("2001:db8::/32", "192.0.2.0/24"), True),
    ],
)
def test_a_board_is_dialled_where_it_is_or_where_the_operator_allows(
    ip: str, peer: str, networks: tuple[str, ...], allowed: bool
) -> None:
    rules = DialRules(read_networks(networks))
    assert is_allowed(ipaddress.ip_address(ip), peer, rules) is allowed


def test_a_wrong_network_is_a_wrong_setting() -> None:
    with pytest.raises(InvalidInputError) as caught:
        read_networks(("192.0.2.7/24",))
    assert caught.value.reason == "SETTING_INVALID"


async def test_what_is_judged_is_what_is_dialled(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"x5.lab": "192.0.2.7", "evil.lab": "127.0.0.1", "two.lab": "192.0.2.9"}

    def resolve(host: str, port: int, **_: Any) -> Any:
        if host not in answers:
            raise OSError("unknown")
        return [(0, 0, 0, "", (answers[host], port)), (0, 0, 0, "", ("2001:db8::7", port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    assert await find_endpoint("x5.lab:7403", "192.0.2.7", PLAIN) == "ipv4:192.0.2.7:7403"
    assert await find_endpoint("two.lab:7403", "2001:db8::7", PLAIN) == "ipv6:[2001:db8::7]:7403"
    for address, code in (("evil.lab:1", "DIAL_ADDRESS_REFUSED"), ("nobody.lab:1", "DIAL_ADDRESS_UNKNOWN")):
        with pytest.raises(BoardliftError) as caught:
            await find_endpoint(address, "192.0.2.7", PLAIN)
        assert caught.value.reason == code


async def test_names_whose_dns_is_silent_hold_up_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    silence = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: silence.wait(20))
    monkeypatch.setattr(dial_address, "_RESOLVE_S", 0.1)
    asked = [asyncio.create_task(find_endpoint(f"x{i}.lab:1", "192.0.2.7", PLAIN)) for i in range(64)]
    try:
        await asyncio.sleep(0.05)
        assert await asyncio.wait_for(asyncio.to_thread(lambda: "read"), 5) == "read"
        for task in asked:
            with pytest.raises(UnavailableError, match="can't be resolved"):
                await task
    finally:
        silence.set()


def test_beyond_this_machine_only_with_tls_or_on_a_closed_network() -> None:
    assert reason("192.0.2.7:7403", "192.0.2.7", DialRules()) == "DIAL_INSECURE"
    assert asyncio.run(find_endpoint("192.0.2.7:7403", "192.0.2.7", DialRules(tls=True))) == "ipv4:192.0.2.7:7403"
    assert asyncio.run(find_endpoint("127.0.0.1:7403", "127.0.0.1", DialRules())) == "ipv4:127.0.0.1:7403"


def test_an_address_that_is_another_spelling_of_loopback_is_loopback() -> None:
    for address in ("[::ffff:127.0.0.1]:7403", "127.1:7403", "2130706433:7403"):
        assert reason(address, "192.0.2.7", PLAIN) == "DIAL_ADDRESS_REFUSED"
