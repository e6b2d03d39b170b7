"""The commands of `boardlift`, one file each."""

from __future__ import annotations

import click

from boardlift import __version__
from boardlift.cli.artifacts import artifacts
from boardlift.cli.boards import boards
from boardlift.cli.check import check
from boardlift.cli.compare import compare
from boardlift.cli.compile import compile_
from boardlift.cli.dataset import dataset
from boardlift.cli.diagnose import diagnose
from boardlift.cli.doctor import doctor
from boardlift.cli.estimate import estimate
from boardlift.cli.jobs import jobs
from boardlift.cli.lease import lease
from boardlift.cli.lint import lint
from boardlift.cli.pull import pull
from boardlift.cli.push import push
from boardlift.cli.remedies import remedies
from boardlift.cli.report import report
from boardlift.cli.run import run
from boardlift.cli.samples import samples
from boardlift.cli.search import search
from boardlift.cli.sensitivity import sensitivity
from boardlift.cli.session import Group
from boardlift.cli.simulate import simulate
from boardlift.cli.transform import transform


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="boardlift")
def app() -> None:
    """Lift a model onto a robot's board: a model goes in, a proven, measured model comes out.

    Exit codes: 0 pass, 1 verdict fail, 2 the input is wrong, 3 infrastructure failed, 4 cancelled, 5 undecided.
    """


for command in (run, jobs, boards, artifacts, report, pull, push, transform, check, lint, compare, doctor, dataset):
    app.add_command(command)
for command in (compile_, simulate, estimate, sensitivity, remedies, search, samples, diagnose, lease):
    app.add_command(command)
