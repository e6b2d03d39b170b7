"""`boardlift dataset`: make datasets from robot logs, arrays or pictures, and look into them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from boardlift.cli.out_path import OUT_FILE
from boardlift.cli.output import size_text
from boardlift.cli.parse import parse_shapes
from boardlift.cli.session import Group, Session, pass_session
from boardlift.errors import InvalidInputError

if TYPE_CHECKING:
    from boardlift.datasets import Dataset

_OUT = click.option("-o", "--out", type=OUT_FILE, required=True, help="File to write, .npz.")
_CALIBRATION = click.option(
    "--calibration", type=click.IntRange(0), default=64, show_default=True, help="To calibrate."
)
_HELDOUT = click.option("--heldout", type=click.IntRange(0), default=256, show_default=True, help="Kept for proof.")
_MOST_FILES = 20
"""Files that are named one by one."""
_SEED = click.option("--seed", type=int, default=0, show_default=True, help="Seed of the draw.")


@click.group(cls=Group, short_help="Make a dataset of a model's real inputs, or show one.")
def dataset() -> None:
    """Make a dataset: samples of a model's real inputs, split and traced to their source."""


@dataset.command(short_help="Stack frames of robot logs (steps.jsonl).")
@click.argument("logs", metavar="LOG...", nargs=-1, required=True, type=click.Path(path_type=Path))
@_OUT
@click.option("--frames", type=click.IntRange(1, 1000), default=5, show_default=True, help="Frames of one sample.")
@click.option(
    "--order",
    type=click.Choice(["oldest-first", "newest-first"]),
    default="oldest-first",
    show_default=True,
    help="Order of a sample's frames, as the robot's code feeds them.",
)
@click.option("--terms", default="", help="Sizes of the terms, when each keeps its own history: 3,3,3,12,12,12.")
@click.option("--input", "input_name", default="obs", show_default=True, help="Model input.")
@click.option("--state", "states", multiple=True, default=("RL",), show_default=True, help="State of the policy.")
@click.option("--state-field", default="state", show_default=True, help="Field of a step with the state.")
@click.option("--observation-field", default="obs_single", show_default=True, help="Field with one frame's numbers.")
@click.option("--time-field", default="t", show_default=True, help="Field with the time in seconds.")
@click.option("--gap-factor", type=float, default=1.5, show_default=True, help="Periods that make a pause a gap.")
@click.option("--synthetic", is_flag=True, help="The logs were generated, not recorded.")
@_CALIBRATION
@_HELDOUT
@_SEED
@pass_session
def steps(
    session: Session,
    logs: tuple[Path, ...],
    out: Path,
    terms: str,
    calibration: int,
    heldout: int,
    seed: int,
    **given: Any,
) -> int:
    """Stack frames of robot logs (steps.jsonl): steps under the policy only, never across a gap or a log's end."""
    from boardlift.datasets import SplitRequest, StepsOptions, build_from_steps

    try:
        sizes = tuple(int(size) for size in terms.split(",")) if terms else ()
    except ValueError as error:
        raise InvalidInputError(
            f"{terms!r} are no sizes.", reason="DATASET_INVALID", remedy="Write --terms 3,3,3,12,12,12."
        ) from error
    made = build_from_steps(logs, StepsOptions(terms=sizes, **given), SplitRequest(calibration, heldout, seed))
    return _write(session, made, out)


@dataset.command(short_help="Take .npy, .npz or raw files, or folders of them.")
@click.argument("sources", metavar="NAME=PATH...", nargs=-1, required=True)
@_OUT
@click.option("--shape", "shapes", multiple=True, help="Shape of one sample: NAME=3x32x18; needed for raw files.")
@click.option("--dtype", default="float32", show_default=True, help="Element type of raw files.")
@click.option("--layout", type=click.Choice(["NCHW", "NHWC"]), default=None, help="Their layout.")
@click.option(
    "--color", type=click.Choice(["rgb", "bgr", "gray", "yuv444"]), default=None, help="Colour of the samples."
)
@click.option("--synthetic", is_flag=True, help="No sensor made the samples.")
@click.option("--no-split", is_flag=True, help="Leave the split to the server.")
@_CALIBRATION
@_HELDOUT
@_SEED
@pass_session
def arrays(
    session: Session,
    sources: tuple[str, ...],
    out: Path,
    shapes: tuple[str, ...],
    dtype: str,
    layout: str | None,
    color: str | None,
    synthetic: bool,
    no_split: bool,
    calibration: int,
    heldout: int,
    seed: int,
) -> int:
    """Take .npy, .npz or raw files, or folders of them with one sample each, per model input.

    NAME is the model's input; of an .npz with several arrays take one by NAME=FILE.npz:ARRAY.
    """
    from boardlift.datasets import ArraySource, SplitRequest, build_from_arrays

    known = parse_shapes(shapes)
    parsed = []
    for source in sources:
        name, separator, path = source.partition("=")
        if not separator or not name or not path:
            raise InvalidInputError(f"{source!r} is no source.", reason="USAGE", remedy="Write obs=samples.npy.")
        file, found, member = path.rpartition(".npz:")
        path, member = (f"{file}.npz", member) if found else (path, "")
        parsed.append(ArraySource(name, Path(path), dtype, known.get(name, ()), layout or "", color or "", member))
    split = None if no_split else SplitRequest(calibration, heldout, seed)
    return _write(session, build_from_arrays(parsed, split, synthetic=synthetic), out)


@dataset.command(short_help="Take the pictures of a folder.")
@click.argument("folder", type=click.Path(path_type=Path))
@_OUT
@click.option("--input", "input_name", required=True, help="Model input.")
@click.option("--size", required=True, help="HEIGHTxWIDTH of the input.")
@click.option(
    "--layout", type=click.Choice(["NCHW", "NHWC"]), default="NCHW", show_default=True, help="Layout of the input."
)
@click.option(
    "--color",
    type=click.Choice(["rgb", "bgr", "gray"]),
    default="rgb",
    show_default=True,
    help="Colour that the model was trained with.",
)
@click.option("--mean", default="", help="Subtracted per channel: 123.7,116.3,103.5.")
@click.option("--scale", default="", help="Multiplied per channel after the mean: 0.017,0.017,0.017.")
@click.option("--resize", is_flag=True, help="Stretch pictures of another size.")
@click.option("--no-split", is_flag=True, help="Leave the split to the server.")
@_CALIBRATION
@_HELDOUT
@_SEED
@pass_session
def images(
    session: Session,
    folder: Path,
    out: Path,
    size: str,
    mean: str,
    scale: str,
    no_split: bool,
    calibration: int,
    heldout: int,
    seed: int,
    **given: Any,
) -> int:
    """Take the pictures of a folder in the form the model was trained with."""
    from boardlift.datasets import ImageOptions, SplitRequest, build_from_images

    try:
        height, width = (int(part) for part in size.split("x"))
    except ValueError as error:
        raise _bad_option("--size", size, "HEIGHTxWIDTH, such as 224x224") from error
    numbers = [_numbers(name, text) for name, text in (("--mean", mean), ("--scale", scale))]
    options = ImageOptions(height=height, width=width, mean=numbers[0], scale=numbers[1], **given)
    split = None if no_split else SplitRequest(calibration, heldout, seed)
    return _write(session, build_from_images(folder, options, split), out)


def _numbers(option: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(",")) if text else ()
    except ValueError as error:
        raise _bad_option(option, text, "a number per channel, such as 123.7,116.3,103.5") from error


def _bad_option(option: str, text: str, wanted: str) -> InvalidInputError:
    return InvalidInputError(f"{option} can't be {text!r}.", reason="USAGE", remedy=f"Write {wanted}.")


@dataset.command()
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@pass_session
def show(session: Session, path: Path) -> int:
    """Show what a dataset holds and where it comes from."""
    from boardlift.datasets import read_dataset

    _describe(session, read_dataset(path), path)
    return 0


def _write(session: Session, made: Dataset, out: Path) -> int:
    from boardlift.datasets import write_dataset

    write_dataset(made, out)
    _describe(session, made, out)
    return 0


def _describe(session: Session, made: Dataset, path: Path) -> None:
    from boardlift.datasets.inspect import describe_arrays

    rows = describe_arrays(made)
    output = session.output
    provenance = made.document.get("provenance", {})
    if session.json:
        output.emit({"file": str(path), "arrays": rows, "document": dict(made.document)})
        return
    headers = ("input", "dtype", "samples", "shape", "min", "max", "mean", "std")
    output.table(headers, [tuple(str(row[name]) for name in headers) for row in rows])
    split = made.split
    counts = f"{split[0]} to calibrate, {split[1]} held out" if split else "not split yet"
    output.line(f"{counts}{', SYNTHETIC' if made.document.get('synthetic') else ''}")
    if "candidates" in provenance:
        output.line(
            f"drawn from {provenance['candidates']} candidates, {provenance.get('duplicates', 0)} duplicates left out"
        )
    files = provenance.get("files", [])
    for file in files[:_MOST_FILES]:
        dropped = ", ".join(f"{count} {reason}" for reason, count in file.get("dropped", {}).items())
        output.line(f"  {file['name']}  {size_text(file['size_bytes'])}" + (f"  dropped: {dropped}" if dropped else ""))
    if len(files) > _MOST_FILES:
        output.line(f"  and {len(files) - _MOST_FILES} more files")
    output.line(f"{path}  {size_text(path.stat().st_size)}")
