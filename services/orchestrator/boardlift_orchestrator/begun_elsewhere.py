"""Leave a task that came again to the board that has begun it, when that board can still bring it to its end.

An orchestrator that dies in the middle of a call leaves the board at work. The task comes back to the queue, where any
board of the pool may take it; on the one that has begun it, it joins the run or finds its stored result.
"""

from __future__ import annotations

from boardlift.v1 import queue_pb2
from boardlift_servicekit.buckets import Bucket

from boardlift_orchestrator.record import StageState, decode_record
from boardlift_orchestrator.registry import NOT_DIALLED, Registry


async def begun_elsewhere(task: queue_pb2.StageTask, board: str, jobs: Bucket, registry: Registry) -> bool:
    """Tell whether another dialled board than `board` has begun this very attempt and is there to go on with it.

    Args:
        task: What came from the queue.
        board: Who would take it.
        jobs: Job records.
        registry: The boards.
    """
    entry = await jobs.get(task.job_id)
    stage = decode_record(entry.value).find(task.stage, task.variant) if entry else None
    if stage is None or stage.state is not StageState.RUNNING or stage.attempt != task.attempt:
        return False
    if stage.worker in ("", board):
        return False
    if not await registry.is_dialled(stage.worker):
        return False  # whether a board that pulls still does, nobody can tell
    sign = await registry.presence(stage.worker)
    if sign is None or not sign.state.in_rotation or sign.state.busy_job not in ("", task.job_id):
        return False
    lease, _ = await registry.lease(stage.worker)
    if lease is not None:
        return False
    # Not dialled yet is what it is for a moment after an orchestrator's death; anything else in the way may last.
    return all(finding.code == NOT_DIALLED for finding in await registry.dial_findings(stage.worker))
