from __future__ import annotations

from pathlib import Path

from boardlift_servicekit.channels import ChannelSettings
from boardlift_servicekit.server import ServerSettings

from boardlift_board_agent.doctor import examine
from boardlift_board_agent.settings import AllSettings, Settings


async def test_a_token_that_would_travel_unencrypted_is_a_fault_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("sesame\n")
    own = Settings(board_id="b1", orchestrator="192.0.2.1:7400", state_dir=tmp_path, board_root=tmp_path)
    settings = AllSettings(own, ServerSettings(), ChannelSettings(token_file=tmp_path / "token"))
    check = next(check for check in await examine(settings) if check.name == "orchestrator")
    assert check.state == "fail" and "without TLS" in check.detail and "BOARDLIFT_TLS_CA" in check.remedy
