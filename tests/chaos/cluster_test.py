"""Three NATS servers with three copies of everything: the leader dies in the middle and every job still ends right."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from boardlift.v1 import job_pb2
from boardlift_servicekit import channels
from support import jobs
from support.persist import submit, wait_for_end
from support.stack import NATS_SERVER, Process, Stack, free_port, wait_for_port

JOBS = 12


class Cluster(Stack):
    """A stack on three servers."""

    def __post_init__(self) -> None:
        super().__post_init__()
        clients, routes, self.monitors = ([free_port() for _ in range(3)] for _ in range(3))
        self.members = []
        for index in range(3):
            config = self.folder / f"n{index}.conf"
            urls = ", ".join(f"nats://127.0.0.1:{port}" for port in routes)
            config.write_text(
                f"server_name: n{index}\nlisten: 127.0.0.1:{clients[index]}\nhttp: 127.0.0.1:{self.monitors[index]}\n"
                f'jetstream {{ store_dir: "{self.folder}/js{index}", sync_interval: always }}\n'
                f"cluster {{ name: c, listen: 127.0.0.1:{routes[index]}, routes: [{urls}] }}\n"
            )
            self.members.append(Process([str(NATS_SERVER), "-c", str(config)], {}, self.folder / f"n{index}.log"))
        self.nats_url = ",".join(f"nats://127.0.0.1:{port}" for port in clients)
        for process in self.servers:
            process.environment |= {"BOARDLIFT_NATS": self.nats_url, "BOARDLIFT_NATS_REPLICAS": "3"}
        for process in self.services:
            process.environment["FAKE_NATS_URL"] = self.nats_url

    def start(self) -> None:
        for member, port in zip(self.members, self.monitors, strict=True):
            member.start()
            wait_for_port(port)
        for process in (*self.servers, *self.services):
            process.start()
        for port in (*self.orchestrator_ports, *self.worker_ports):
            wait_for_port(port)

    def stop(self) -> None:
        for process in (*self.services, *self.servers, *self.members):
            process.kill()

    def leader(self, stream: str) -> int:
        """Which member leads a stream."""
        for port in self.monitors:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/jsz?streams=true", timeout=2) as answer:
                    accounts = json.load(answer)["account_details"]
            except OSError:
                continue
            for item in accounts[0]["stream_detail"]:
                if item["name"] == stream and item.get("cluster", {}).get("leader"):
                    return int(item["cluster"]["leader"][1:])
        raise LookupError(stream)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path, orchestrators=2, workers=2, fakes={"FAKE_SECONDS": "0.3"})
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.mark.slow
@pytest.mark.timeout(500)
async def test_jobs_survive_the_death_of_stream_leaders(cluster: Cluster, tmp_path: Path) -> None:

    opened = [channels.connect(f"127.0.0.1:{port}") for port in cluster.orchestrator_ports]
    dataset = await jobs.upload(opened[0], tmp_path / "client", b"samples")
    start = time.monotonic()
    names = await asyncio.gather(*(submit(opened, dataset, index) for index in range(JOBS)))
    for stream in ("KV_JOB", "TASK"):
        await asyncio.sleep(1.0)
        victim = cluster.members[cluster.leader(stream)]
        victim.kill()
        await asyncio.sleep(2.0)
        victim.start()
        await asyncio.sleep(4.0)  # the copies catch up before the next one dies
    ended = await asyncio.gather(*(wait_for_end(opened[i % 2], name) for i, name in enumerate(names)))
    print(f"{JOBS} jobs over two leaders' deaths: {time.monotonic() - start:.1f} s")
    assert [job.state for job in ended] == [job_pb2.Job.STATE_SUCCEEDED] * JOBS
    for channel in opened:
        await channel.close()
