"""Facts about a board -> may it take work, and if not, why. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from boardlift_board_agent.probe import BoardReading


@dataclass(frozen=True)
class HealthLimits:
    """What a board must fulfil to take work."""

    hot_c: float = 90.0
    """Hotter is out of rotation: a run would reach the passive trip point at 95."""
    warm_c: float = 80.0
    """Hotter is worth a note on every measurement."""
    disk_free_bytes: int = 512 << 20
    """Less free disk is out of rotation."""
    memory_free_bytes: int = 256 << 20
    """Less free memory is out of rotation."""
    foreign_bpu_ratio: float = 10.0
    """BPU load in percent, while we are idle, from which on somebody else uses it."""
    governor: str = "performance"
    """Governor measurements are meant to run under; empty for any."""


@dataclass(frozen=True)
class Fact:
    """One thing worth saying about the board."""

    code: str
    """Stable, UPPER_SNAKE."""
    blocking: bool
    """True when the board must not take work."""
    message: str
    remedy: str


@dataclass(frozen=True)
class RuntimeState:
    """What is known about the runtime and its surroundings besides the readings."""

    tool_present: bool = True
    """`hrt_model_exec` was found and answers."""
    skew: tuple[str, str] | None = None
    """(runtime, built for) when a model of the supported toolchain is newer than the runtime."""
    foreign_processes: tuple[int, ...] = ()
    """Processes that hold the BPU."""
    failures_in_row: int = 0
    """Runs that failed one after the other through no fault of the model."""
    cloned: bool = False
    """Another agent serves under the same id."""
    governor_stuck: str = ""
    """Why a governor that a run set could not be put back."""


FAILURE_LIMIT = 3


def judge_health(reading: BoardReading, runtime: RuntimeState, limits: HealthLimits, idle: bool = True) -> list[Fact]:
    """Lists what is wrong or worth knowing, worst first.

    Args:
        reading: sensors, clocks, memory, disk; what is absent is not judged.
        runtime: tool, versions, other users, recent failures.
        limits: thresholds.
        idle: no run of ours is going on, so BPU load is somebody else's.

    Returns:
        The facts; the board may take work when none is blocking.
    """
    facts = [*_runtime_facts(runtime), *_heat_facts(reading, limits), *_space_facts(reading, limits)]
    if idle and (reading.bpu_ratio or 0) > limits.foreign_bpu_ratio:
        text = f"The BPU is {reading.bpu_ratio:.0f} % busy though no run of ours is going on."
        facts.append(Fact("BPU_SHARED", True, text, "Stop the other program, or lease the board."))
    wanted = limits.governor
    others = [f"the CPU's is {reading.governor}"] if reading.governor not in (None, wanted) else []
    if wanted == "performance" and reading.bpu_governor not in (None, wanted):  # CPU and BPU share only some names
        others.append(f"the BPU's is {reading.bpu_governor}")
    if wanted and others:
        text = f"Measurements are meant to run under the governor {wanted}; {', '.join(others)}."
        facts.append(Fact("GOVERNOR_OTHER", False, text, f"Set it to {wanted}, or ask for it in the run."))
    if reading.boost:
        facts.append(Fact("CPU_BOOSTED", False, "The CPU may run above 1.5 GHz.", "Compare only with boosted boards."))
    return sorted(facts, key=lambda fact: not fact.blocking)


def in_rotation(facts: list[Fact]) -> bool:
    """True when nothing blocks."""
    return not any(fact.blocking for fact in facts)


def _runtime_facts(runtime: RuntimeState) -> list[Fact]:
    facts = []
    if not runtime.tool_present:
        remedy = (
            "Install the board's runtime package; one that is there is named by BOARDLIFT_HRT_MODEL_EXEC, absolute."
        )
        facts.append(Fact("RUNTIME_MISSING", True, "hrt_model_exec does not start.", remedy))
    if runtime.cloned:
        facts.append(
            Fact("IDENTITY_CLONED", True, "Another agent serves under this id.", "Give each board an id of its own.")
        )
    if runtime.skew:
        text = f"The runtime is {runtime.skew[0]}, models are built for {runtime.skew[1]}."
        facts.append(Fact("VERSION_SKEW", True, text, "Update the board's OS image or use the matching toolchain."))
    if runtime.foreign_processes:
        ids = ", ".join(str(p) for p in runtime.foreign_processes[:5])
        facts.append(Fact("BPU_SHARED", True, f"Processes {ids} hold the BPU.", "Stop them, or lease the board."))
    if runtime.governor_stuck:
        text = f"A governor set for a run is not put back: {runtime.governor_stuck}"
        facts.append(Fact("GOVERNOR_NOT_RESTORED", True, text, "Make the file writable for the agent, or set it back."))
    if runtime.failures_in_row >= FAILURE_LIMIT:
        text = f"The last {runtime.failures_in_row} runs failed through no fault of their models."
        facts.append(Fact("BOARD_FAILING", True, text, "Look at the agent's log; restart the board."))
    return facts


def _heat_facts(reading: BoardReading, limits: HealthLimits) -> list[Fact]:
    heats = {"CPU": reading.cpu_c, "BPU": reading.bpu_c, "DDR": reading.ddr_c}
    known = {name: value for name, value in heats.items() if value is not None}
    facts = []
    if known:
        name = max(known, key=lambda key: known[key])
        value = known[name]
        text = f"{name} is at {value:.1f} degrees C."
        if value >= limits.hot_c:
            facts.append(Fact("TOO_HOT", True, text, "Let it cool down; check fan and heat sink."))
        elif value >= limits.warm_c:
            facts.append(Fact("WARM", False, text, "Expect slower clocks in long runs."))
    throttled = [
        f"{name} {now:.0f} of {top:.0f} MHz"
        for name, now, top in (("BPU", reading.bpu_mhz, reading.bpu_max_mhz),)
        # A governor that follows the load lets an idle clock fall: that is not throttling.
        if now is not None and top is not None and now < 0.95 * top and reading.bpu_governor in (None, "performance")
    ]
    fast = reading.governor == "performance"
    if fast and reading.cpu_mhz and reading.cpu_max_mhz and reading.cpu_mhz < 0.95 * reading.cpu_max_mhz:
        throttled.append(f"CPU {reading.cpu_mhz:.0f} of {reading.cpu_max_mhz:.0f} MHz")
    if throttled:
        facts.append(
            Fact("THROTTLED", True, f"Clocks are held back: {', '.join(throttled)}.", "Let it cool down; check power.")
        )
    return facts


def _space_facts(reading: BoardReading, limits: HealthLimits) -> list[Fact]:
    facts = []
    disk, memory = reading.disk_free_bytes, reading.memory_free_bytes
    if disk is not None and disk < limits.disk_free_bytes:
        facts.append(
            Fact("DISK_FULL", True, f"Only {disk >> 20} MiB of disk are free.", "Free some space in the work folder.")
        )
    if memory is not None and memory < limits.memory_free_bytes:
        facts.append(Fact("MEMORY_LOW", True, f"Only {memory >> 20} MiB of memory are free.", "Stop other programs."))
    return facts
