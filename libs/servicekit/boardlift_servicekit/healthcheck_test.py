import asyncio
import os
import socket
import subprocess
import sys
import threading

import pytest

from boardlift_servicekit.healthcheck import NotHealthy, check_health, settings_from
from boardlift_servicekit.server import Host, ServerSettings


def make_certificates(folder):
    """A server certificate for localhost that is its own CA."""
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj", "/CN=localhost"]
    subprocess.run([*command, "-addext", "subjectAltName=DNS:localhost"], cwd=folder, check=True, capture_output=True)
    return folder / "cert.pem", folder / "key.pem"


async def probe(**environment):
    command = [sys.executable, "-m", "boardlift_servicekit.healthcheck"]
    child = await asyncio.create_subprocess_exec(
        *command, "--timeout", "2", env={**os.environ, **environment}, stdout=-1, stderr=-1
    )
    out, err = await child.communicate()
    return child.returncode, (out + err).decode().strip()


async def test_says_what_the_server_says():
    host = Host("probed", ServerSettings())
    port = await host.start()
    assert await probe(BOARDLIFT_LISTEN=f"0.0.0.0:{port}") == (0, "SERVING")
    await host.set_serving("", False)
    code, text = await probe(BOARDLIFT_LISTEN=f"127.0.0.1:{port}")
    assert (code, text) == (1, "not healthy: NOT_SERVING")
    await host.stop()
    code, text = await probe(BOARDLIFT_LISTEN=f"127.0.0.1:{port}")
    assert code == 1 and "refused" in text


async def test_trusts_only_the_right_certificate(tmp_path):
    cert, key = make_certificates(tmp_path)
    (tmp_path / "other").mkdir()
    other, _ = make_certificates(tmp_path / "other")
    host = Host("probed", ServerSettings(tls_cert=cert, tls_key=key, tls_client_ca=cert))
    port = await host.start()
    known = {"BOARDLIFT_LISTEN": f"127.0.0.1:{port}", "BOARDLIFT_TLS_CERT": str(cert), "BOARDLIFT_TLS_KEY": str(key)}
    assert await probe(**known, BOARDLIFT_TLS_CLIENT_CA=str(cert)) == (0, "SERVING")
    code, _ = await probe(**known, BOARDLIFT_TLS_CLIENT_CA=str(cert), BOARDLIFT_TLS_CA=str(other))
    assert code == 1
    code, _ = await probe(**known)  # shows no certificate of its own
    assert code == 1
    await host.stop()


async def test_asks_for_one_service():
    host = Host("probed", ServerSettings())
    port = await host.start()
    with pytest.raises(NotHealthy):
        await asyncio.to_thread(check_health, ("127.0.0.1", port), "boardlift.v1.Nothing")
    await asyncio.to_thread(check_health, ("127.0.0.1", port), "")
    await host.stop()


def test_something_else_behind_the_port_is_not_healthy():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            link, _ = server.accept()
            with link:
                link.recv(1000)
                link.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises((NotHealthy, OSError)):
            check_health(server.getsockname(), timeout_s=2)
        thread.join()


@pytest.mark.parametrize(
    ("listen", "address"),
    [("0.0.0.0:7401", ("127.0.0.1", 7401)), ("[::]:7401", ("::1", 7401)), ("10.0.0.5:1", ("10.0.0.5", 1))],
)
def test_listening_everywhere_is_probed_on_loopback(listen, address):
    assert settings_from({"BOARDLIFT_LISTEN": listen}) == (address, None)
