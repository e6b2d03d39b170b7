"""Ends of a stage that have nothing to do with the tool."""

import errno

import numpy as np
import pytest
from boardlift.v1 import compiler_pb2
from boardlift_servicekit.artifacts import LocalStore
from boardlift_servicekit.executions import Emitter

from boardlift_compiler.explain_failure import explain_os_error
from boardlift_compiler.history import History
from boardlift_compiler.run_mapper import Limits
from boardlift_compiler.run_stages import StageRunner
from boardlift_compiler.toolchain import Toolchain

TOOL = Toolchain("/nonexistent", "1.24.3")


@pytest.mark.parametrize(
    ("number", "code"),
    [(errno.ENOSPC, "DISK_FULL"), (errno.EDQUOT, "DISK_FULL"), (errno.EROFS, "WORK_FOLDER_UNWRITABLE")],
)
def test_a_full_disk_and_an_unwritable_folder_are_told_apart(number, code):
    failure = explain_os_error(OSError(number, "as it says"))
    assert (failure.code, failure.user_fault) == (code, False)


def test_another_fault_stays_what_it_is():
    with pytest.raises(ConnectionResetError):
        explain_os_error(ConnectionResetError(errno.ECONNRESET, "gone"))


async def test_a_disk_that_fills_up_before_the_tool_starts_is_a_failure_like_any_other(models, tmp_path, small_disk):
    """The samples alone are larger than the file system of 2 MB; without the right to mount one, see above."""
    if small_disk is None:
        return
    store = LocalStore(tmp_path / "store", 1 << 30)
    runner = StageRunner(TOOL, store, small_disk, Limits(), History(tmp_path / "history"), 1)
    np.savez(tmp_path / "samples.npz", **models.samples(models.policy(), 4000))
    request = compiler_pb2.CompileModelRequest(
        model=await store.put_bytes(models.policy().SerializeToString(), "application/onnx"),
        calibration=await store.put_file(tmp_path / "samples.npz", "application/x-npz"),
        variant=compiler_pb2.VariantSpec(preset="int8"),
    )
    result = await runner.compile(request, Emitter(lambda event: None))
    assert (result.failure.code, result.failure.user_fault) == ("DISK_FULL", False)
    assert result.execution.tools[0].version == "1.24.3"
    assert list(small_disk.iterdir()) == []
