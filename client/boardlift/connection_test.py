from __future__ import annotations

import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from boardlift.client import Client
from boardlift.connection import DEFAULT_SERVER, Connection
from boardlift.errors import InvalidInputError, UnauthenticatedError, UnavailableError
from boardlift.testing import FakeServer


def make_certificate() -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return private, builder.sign(key, hashes.SHA256()).public_bytes(pem)


def test_arguments_win_over_the_environment_and_the_environment_over_defaults(tmp_path):
    (tmp_path / "token").write_text("from-file\n")
    env = {"BOARDLIFT_SERVER": "lab:1", "BOARDLIFT_TOKEN_FILE": str(tmp_path / "token"), "BOARDLIFT_CA": "ca.pem"}
    connection = Connection.from_environment(environ=env)
    assert (connection.server, connection.token, str(connection.ca)) == ("lab:1", "from-file", "ca.pem")
    assert Connection.from_environment("other:2", token="mine", environ=env).token == "mine"
    assert Connection.from_environment(environ={**env, "BOARDLIFT_TOKEN": "direct"}).token == "direct"
    assert Connection.from_environment(environ={}) == Connection(DEFAULT_SERVER)
    with pytest.raises(InvalidInputError, match="TOKEN_UNREADABLE"):
        Connection.from_environment(environ={"BOARDLIFT_TOKEN_FILE": str(tmp_path / "none")})


@pytest.mark.parametrize(
    ("server", "transform"),
    [
        ("127.0.0.1:7400", "127.0.0.1:7401"),
        ("http://orchestrator:7500/", "http://orchestrator:7501"),
        ("https://lab.example", "https://lab.example:7401"),
        ("[::1]:7400", "[::1]:7401"),
        ("unix:/tmp/x", "127.0.0.1:7401"),
    ],
)
def test_stage_services_are_looked_for_beside_the_orchestrator(server, transform):
    assert Connection(server).beside(1) == transform


@pytest.mark.parametrize(
    ("server", "tls", "address"),
    [
        ("127.0.0.1:7400", False, "127.0.0.1:7400"),
        ("localhost:7400", False, "localhost:7400"),
        ("[::1]:7400", False, "[::1]:7400"),
        ("unix:/tmp/x", False, "unix:/tmp/x"),
        ("lab.example:443", True, "lab.example:443"),
        ("http://orchestrator:7400", False, "orchestrator:7400"),
        ("https://127.0.0.1:7400/", True, "127.0.0.1:7400"),
    ],
)
def test_other_machines_are_reached_encrypted_unless_told_otherwise(server, tls, address):
    connection = Connection(server)
    assert (connection.uses_tls, connection.address) == (tls, address)


def test_a_token_never_travels_unencrypted_and_never_shows():
    assert "secret" not in repr(Connection("a:1", token="secret"))
    with pytest.raises(InvalidInputError, match="PLAINTEXT_TOKEN"):
        Client("http://lab.example:7400", token="secret")


def test_a_server_with_a_token_lets_only_the_right_one_in():
    with FakeServer(token="right") as server:
        with Client(server.address, token="right") as client:
            assert client.boards()
        with Client(server.address, token="wrong") as client, pytest.raises(UnauthenticatedError):
            client.boards()


def test_tls_with_a_private_ca_and_a_token(tmp_path):
    key, certificate = make_certificate()
    (tmp_path / "ca.pem").write_bytes(certificate)
    with FakeServer(tls=(key, certificate), token="right") as server:
        with Client(server.address, ca=tmp_path / "ca.pem", token="right") as client:
            assert client.boards()
        with Client(f"https://{server.address}", patience_s=0.2) as client, pytest.raises(UnavailableError):
            client.boards()
    with pytest.raises(InvalidInputError, match="CERTIFICATE_UNREADABLE"):
        Client("lab:1", ca=tmp_path / "none.pem")


@pytest.mark.parametrize("server", ["127.0.0.1:99999", "host:0", "host:", "host:port", "a b:1", ":7400", "host/path:1"])
def test_what_is_no_address_is_refused_at_once(server):
    with pytest.raises(InvalidInputError, match="ADDRESS_INVALID"):
        Client(server)


@pytest.mark.parametrize("server", ["host", "host:1", "https://host:7400", "http://[::1]:7400/", "unix:/run/b.sock"])
def test_what_is_an_address_is_left_to_the_network(server):
    Client(server).close()
