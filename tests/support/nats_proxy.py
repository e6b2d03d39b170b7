"""Sits between a client and the nats-server and can do what a server or a network does to a connection."""

from __future__ import annotations

import asyncio
import contextlib


class NatsProxy:
    """`url` is where clients connect; `say` speaks to them in the server's name; `delay_s` slows what they are told."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._clients: set[asyncio.StreamWriter] = set()
        self.delay_s = 0.0

    async def __aenter__(self) -> NatsProxy:
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"nats://127.0.0.1:{self._listener.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._listener.close()
        self.drop()

    def say(self, line: str) -> None:
        """Send a line of the protocol to all clients, as the server would."""
        for client in self._clients:
            client.write(f"{line}\r\n".encode())

    def drop(self) -> None:
        """Break all connections."""
        for client in self._clients:
            client.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._clients.add(writer)
        with contextlib.suppress(OSError):
            from_server, to_server = await asyncio.open_connection("127.0.0.1", self._server_port)
            ways = [self._pass(reader, to_server, slow=False), self._pass(from_server, writer, slow=True)]
            tasks = [asyncio.create_task(way) for way in ways]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()
            to_server.close()
        self._clients.discard(writer)
        writer.close()

    async def _pass(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, slow: bool) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65536):
                if slow and self.delay_s:
                    await asyncio.sleep(self.delay_s)
                target.write(data)
                await target.drain()
