from boardlift.cli.boards import status_of
from boardlift.models import Board, Finding


def test_a_board_s_status_says_why_it_takes_no_work():
    hot = (Finding("TOO_HOT", "error", "90 degrees"), Finding("WARM", "note", "80 degrees"))
    assert status_of(Board("b", online=True, in_rotation=True, findings=hot[1:])) == "free"
    assert status_of(Board("b", online=True, findings=hot)) == "out of rotation: TOO_HOT"
    assert status_of(Board("b", findings=hot)) == "offline"
