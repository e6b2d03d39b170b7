"""A governor is set only with permission and put back however the run ends: by itself, by an error, by a signal."""

import asyncio
import json
import signal
import time
from pathlib import Path

import grpc
import pytest
from boardlift.errors import BoardliftError, InvalidInputError, PreconditionError, from_rpc_error
from boardlift.v1 import board_agent_pb2, toolchain_pb2, toolchain_pb2_grpc

from boardlift_board_agent import hold_governor
from boardlift_board_agent.doctor import _governor
from boardlift_board_agent.hold_governor import GovernorKeeper

CPU = "sys/devices/system/cpu/cpufreq"
BPU = "sys/class/devfreq/3a000000.bpu"
POLICIES = [f"{CPU}/policy0/scaling_governor", f"{CPU}/policy4/scaling_governor"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    board = tmp_path / "board"
    for policy, governor in (("policy0", "schedutil"), ("policy4", "ondemand")):
        folder = board / CPU / policy
        folder.mkdir(parents=True)
        (folder / "scaling_governor").write_text(governor + "\n")
        (folder / "scaling_available_governors").write_text("ondemand schedutil performance \n")
    folder = board / BPU
    folder.mkdir(parents=True)
    (folder / "governor").write_text("simple_ondemand\n")
    (folder / "available_governors").write_text("simple_ondemand performance\n")
    return board


def governors(root: Path) -> list[str]:
    return [(root / name).read_text().strip() for name in (*POLICIES, f"{BPU}/governor")]


BEFORE = ["schedutil", "ondemand", "simple_ondemand"]


@pytest.fixture
def keeper(root: Path, tmp_path: Path) -> GovernorKeeper:
    return GovernorKeeper(root, tmp_path / "governor.json", permitted=True)


def test_all_policies_and_the_bpu_are_set_and_put_back(root: Path, keeper: GovernorKeeper, tmp_path: Path) -> None:
    with keeper.hold("performance") as held:
        assert governors(root) == ["performance"] * 3
        assert held is not None and list(held.before.values()) == BEFORE
        assert json.loads((tmp_path / "governor.json").read_text())["wanted"] == "performance"
    assert governors(root) == BEFORE
    assert not (tmp_path / "governor.json").exists()


def test_a_governor_only_the_cpu_has_leaves_the_bpu_alone(root: Path, keeper: GovernorKeeper) -> None:
    with keeper.hold("schedutil") as held:
        assert governors(root) == ["schedutil", "schedutil", "simple_ondemand"]
        assert held is not None and held.left == (f"{BPU}/governor",)
        assert list(held.before) == POLICIES[1:]
    assert governors(root) == BEFORE


@pytest.mark.parametrize("error", [RuntimeError("x"), asyncio.CancelledError()])
def test_an_error_puts_it_back(root: Path, keeper: GovernorKeeper, error: BaseException) -> None:
    with pytest.raises(type(error)), keeper.hold("performance"):
        raise error
    assert governors(root) == BEFORE


def test_after_a_kill_the_next_start_puts_it_back(root: Path, keeper: GovernorKeeper, tmp_path: Path) -> None:
    holding = keeper.hold("performance")
    holding.__enter__()  # never left: killed
    GovernorKeeper(root, tmp_path / "governor.json").restore()  # no permission is needed to put back
    assert governors(root) == BEFORE
    assert not (tmp_path / "governor.json").exists()


@pytest.mark.parametrize(("boot", "after"), [("boot-1", BEFORE), ("boot-2", ["performance"] * 3)])
def test_a_governor_of_an_earlier_kernel_start_is_not_put_back(
    root: Path, keeper: GovernorKeeper, tmp_path: Path, boot: str, after: list[str]
) -> None:
    """After a power cut in the middle of a run the board may well have been set up anew, to that very governor."""
    file = root / "proc/sys/kernel/random/boot_id"
    file.parent.mkdir(parents=True)
    file.write_text("boot-1\n")
    with keeper.hold("performance"):
        left = (tmp_path / "governor.json").read_text()
    (tmp_path / "governor.json").write_text(left)
    for name in (*POLICIES, f"{BPU}/governor"):
        (root / name).write_text("performance\n")
    file.write_text(f"{boot}\n")
    keeper.restore()
    assert governors(root) == after
    assert not (tmp_path / "governor.json").exists() and not keeper.stuck


def test_what_somebody_else_has_set_since_is_left_alone(root: Path, keeper: GovernorKeeper) -> None:
    with keeper.hold("performance"):
        (root / POLICIES[0]).write_text("userspace\n")
    assert governors(root) == ["userspace", "ondemand", "simple_ondemand"]


def test_without_permission_nothing_is_set(root: Path, tmp_path: Path) -> None:
    with pytest.raises(PreconditionError) as caught, GovernorKeeper(root, tmp_path / "s").hold("performance"):
        pytest.fail("the body must not run")
    assert caught.value.reason == "GOVERNOR_NOT_PERMITTED" and "BOARDLIFT_ALLOW_GOVERNOR=1" in caught.value.remedy
    assert governors(root) == BEFORE


def test_what_is_as_asked_already_needs_no_permission(root: Path, tmp_path: Path) -> None:
    for name in (*POLICIES, f"{BPU}/governor"):
        (root / name).write_text("performance\n")
    with GovernorKeeper(root, tmp_path / "s").hold("performance") as held:
        assert held is not None and held.before == {}


def test_a_file_that_takes_no_writing_is_refused_and_the_others_put_back(root: Path, keeper: GovernorKeeper) -> None:
    (root / POLICIES[1]).unlink()
    (root / POLICIES[1]).symlink_to("/proc/version")  # reads, and refuses to be written even by root
    with pytest.raises(PreconditionError) as caught, keeper.hold("performance"):
        pytest.fail("the body must not run")
    assert caught.value.reason == "GOVERNOR_NOT_WRITABLE" and "tmpfiles" in caught.value.remedy
    assert governors(root)[0] == "schedutil" and not keeper.stuck


@pytest.mark.parametrize(
    ("wanted", "kind", "reason"),
    [
        ("turbo", PreconditionError, "GOVERNOR_UNKNOWN"),
        ("../../etc/passwd", InvalidInputError, "GOVERNOR_INVALID"),
        ("performance\n", InvalidInputError, "GOVERNOR_INVALID"),
    ],
)
def test_odd_names_are_refused(root, keeper: GovernorKeeper, wanted: str, kind: type[BoardliftError], reason) -> None:
    with pytest.raises(kind) as caught:
        keeper.check(wanted)
    assert caught.value.reason == reason
    assert governors(root) == BEFORE


def test_a_board_without_governors_says_so(tmp_path: Path) -> None:
    with pytest.raises(PreconditionError) as caught:
        GovernorKeeper(tmp_path, tmp_path / "s", permitted=True).check("performance")
    assert caught.value.reason == "GOVERNOR_ABSENT"


def test_what_can_not_be_put_back_is_said_and_tried_again(root, keeper: GovernorKeeper, tmp_path, monkeypatch) -> None:
    real = GovernorKeeper._set

    def refuse(self: GovernorKeeper, name: str, governor: str) -> None:
        if governor != "performance":
            raise hold_governor._not_writable(name, "gone")
        real(self, name, governor)

    with monkeypatch.context() as patch:
        patch.setattr(GovernorKeeper, "_set", refuse)
        with keeper.hold("performance"):
            pass
    assert "gone" in keeper.stuck and (tmp_path / "governor.json").exists()
    keeper.restore()
    assert keeper.stuck == "" and governors(root) == BEFORE


def test_the_doctor_tries_what_is_permitted(root: Path, keeper: GovernorKeeper) -> None:
    assert [check.state for check in _governor(keeper)] == ["ok"]
    (root / POLICIES[0]).with_name("scaling_available_governors").write_text("schedutil\n")
    assert [(check.state, "no governor" in check.detail) for check in _governor(keeper)] == [("fail", True)]
    assert _governor(GovernorKeeper(root)) == []


SIMULATED = ("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "sys/class/devfreq/bpu/governor")


def set_governors(agent, *names: str) -> None:
    for file, name in zip(SIMULATED, names, strict=True):
        (agent.board_root / file).write_text(name + "\n")


def shown(agent) -> list[str]:
    return [(agent.board_root / file).read_text().strip() for file in SIMULATED]


async def perf_request(caller, materials, **perf) -> board_agent_pb2.RunModelRequest:
    spec = board_agent_pb2.PerfSpec(governor="performance", threads=[1], **perf)
    request = await caller.request(materials["policy8"], perf=spec)
    for field in ("heldout", "reference_outputs", "quantized_outputs"):
        request.ClearField(field)
    return request


async def until_set(agent) -> None:
    end = time.monotonic() + 30
    while shown(agent) != ["performance", "performance"]:
        assert time.monotonic() < end
        await asyncio.sleep(0.02)


@pytest.mark.toolchain
async def test_a_run_sets_it_for_the_measurement_and_records_all(start_agent, call, materials) -> None:
    agent = start_agent(allow_governor="1")
    set_governors(agent, "schedutil", "simple_ondemand")
    caller = call(agent)
    described = await caller.stub.DescribeBoard(board_agent_pb2.DescribeBoardRequest())
    assert "governor" in described.board.capabilities
    result = await caller.result(await perf_request(caller, materials, frames=200))
    assert [(s.governor, s.bpu_governor) for s in result.states] == [
        ("schedutil", "simple_ondemand"), ("performance", "performance"), ("schedutil", "simple_ondemand"),
    ]  # fmt: skip
    assert shown(agent) == ["schedutil", "simple_ondemand"]
    found = {f.code: f.message for f in result.findings}
    assert "from schedutil" in found["GOVERNOR_HELD"] and "GOVERNOR_OTHER" not in found
    compared = board_agent_pb2.CompareModelsRequest(
        run_id="ab", first_model=await caller.upload(materials["policy8"].model), rounds=2, governor="performance"
    )
    compared.second_model.CopyFrom(compared.first_model)
    result = [r async for r in caller.stub.CompareModels(compared, timeout=60)][-1].result
    assert [s.governor for s in result.states] == ["schedutil", "performance", "schedutil"]
    assert "GOVERNOR_HELD" in {f.code for f in result.findings}


@pytest.mark.toolchain
async def test_a_board_that_does_not_permit_it_refuses_the_run(start_agent, call, materials) -> None:
    agent = start_agent()
    set_governors(agent, "schedutil", "performance")
    caller = call(agent)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await caller.result(await perf_request(caller, materials))
    assert from_rpc_error(caught.value).reason == "GOVERNOR_NOT_PERMITTED"
    assert shown(agent) == ["schedutil", "performance"]


@pytest.mark.toolchain
@pytest.mark.parametrize("end", ["cancel", "SIGTERM", "SIGKILL"])
async def test_a_run_that_does_not_end_by_itself_leaves_the_board_as_it_was(
    start_agent, call, materials, end: str
) -> None:
    agent = start_agent(allow_governor="1", simulator_realtime="1")
    set_governors(agent, "schedutil", "simple_ondemand")
    caller = call(agent)
    request = await perf_request(caller, materials, frames=100_000)
    running = asyncio.create_task(caller.run(request, metadata=(("x-execution-id", "me"),)))
    await until_set(agent)
    if end == "cancel":
        server = toolchain_pb2_grpc.ServerServiceStub(caller.channel)
        stop = toolchain_pb2.CancelExecutionRequest(execution_id="me")
        assert (await server.CancelExecution(stop, timeout=10)).stopped
    else:
        await asyncio.to_thread(agent.stop, signal.Signals[end])
    with pytest.raises(grpc.aio.AioRpcError):
        await running
    if end == "SIGKILL":
        assert shown(agent) == ["performance", "performance"]
        agent.start()
    assert shown(agent) == ["schedutil", "simple_ondemand"]


@pytest.mark.toolchain
async def test_a_governor_changed_meanwhile_spoils_the_result(start_agent, call, materials) -> None:
    agent = start_agent(allow_governor="1", simulator_realtime="1")
    set_governors(agent, "schedutil", "performance")
    caller = call(agent)
    running = asyncio.create_task(caller.result(await perf_request(caller, materials, frames=4000)))
    await until_set(agent)
    set_governors(agent, "powersave", "performance")
    found = {f.code: f for f in (await running).findings}
    assert found["GOVERNOR_NOT_AS_ASKED"].severity == toolchain_pb2.Finding.SEVERITY_ERROR
    assert "powersave" in found["GOVERNOR_NOT_AS_ASKED"].message
    assert shown(agent) == ["powersave", "performance"]
