from boardlift.cli.output import Output
from boardlift.cli.print_plan import longest_way, print_plan, refused
from boardlift.models import Failure, Figure, JobPlan, StagePlan


def took(seconds):
    return Figure("duration_s", seconds, "s", "estimated", "median of 3 past runs, same model")


PLAN = JobPlan(
    stages=(
        StagePlan("ingest", "", "always_runs", took(2.0), 3, "same model"),
        StagePlan("transform", "", "cached"),
        StagePlan("check", "", "runs", took(4.0), 1, "any model"),
        StagePlan("compile", "a", "after_run", took(60.0), 3, "same model"),
        StagePlan("simulate", "a", "after_run"),
        StagePlan("compile", "b", "after_run", took(90.0), 3, "similar size"),
        StagePlan("simulate", "b", "after_run", took(10.0), 3, "similar size"),
        StagePlan("verdict", "", "always_runs", took(1.0), 3, "any model"),
    ),
    boards_online=2,
    boards_free=1,
    board_stages_queued=4,
    active_jobs=3,
    waiting_jobs=5,
    own_waiting_jobs=2,
)


def test_variants_run_side_by_side_and_what_is_not_known_is_named():
    assert longest_way(PLAN) == (2.0 + 4.0 + 100.0 + 1.0, ["simulate a"])


def test_every_figure_says_its_kind_and_where_it_comes_from(capsys):
    print_plan(Output(json_mode=False), PLAN, with_board=True)
    out = capsys.readouterr().out
    assert "4.0 s        estimated  1 past run, any model" in out
    assert "transform           from the cache" in out
    assert "At least 1 min 47 s when nobody waits (estimated from past runs); no past run of simulate a." in out
    assert "3 jobs in work, 5 waiting for their turn, 2 of them yours, before this one." in out
    assert "1 of 2 online free now, 4 board stages queued." in out


def test_a_stored_no_of_a_shared_stage_refuses_the_job():
    no = Failure("OUTPUT_NOT_FOUND", "no value named x")
    plan = JobPlan(
        stages=(StagePlan("transform", "", "cached", failure=no), StagePlan("compile", "a", "cached", failure=no))
    )
    assert refused(plan) == [no]
