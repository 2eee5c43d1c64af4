"""cosim diff: what changed between two runs, and by how much."""

from dataclasses import dataclass
from pathlib import Path

import click

from cosim.cli.help import Verb
from cosim.cli.options import FILE, collecting, json_option, pdk_root_option
from cosim.cli.progress import progress_bar
from cosim.verbs.common import check_json, check_outputs, take_folder, write_json


@dataclass(frozen=True)
class Answering:
    """Destinations of a difference as well as the terminal: a folder, a JSON file, and the exit status."""

    output: Path | None
    json_file: Path | None
    exit_code: bool


@dataclass(frozen=True)
class DiffOptions:
    """Options of a comparison of two runs: specs for the chips of both, and where their technology is now."""

    specs: tuple[str, ...]
    pdk_root: Path | None
    technology: Path | None


@click.command(cls=Verb)
@click.argument("run_a", metavar="RUN_A", type=FILE)
@click.argument("run_b", metavar="RUN_B", type=FILE)
@click.option("-o", "--output", type=FILE, help="Folder for diff.html and diff.json.")
@json_option
@click.option("--exit-code", is_flag=True, help="Exit with status 1 where anything differs.")
@click.option("--spec", "specs", multiple=True, help="What chips of both runs must do [default: each run's own].")
@pdk_root_option
@click.option("--technology", type=FILE, help="Where the .toml of both runs of chips stands now.")
@collecting(to=Answering, asking=DiffOptions)
def command(*, run_a: Path, run_b: Path, to: Answering, asking: DiffOptions) -> None:
    """Say what changed between two finished runs, by how much, and where.

    RUN_A and RUN_B are folders of compare, simulate, power, montecarlo, sweep or demo. What differs in settings,
    network, technology and versions; every figure's difference B - A with a 95 % interval and a test, paired on the
    same samples and chips where they are the same; samples decided otherwise, chips whose verdict turned with the unit
    that turns it, and units whose states moved. Nothing is simulated.
    """
    from cosim.verbs.diff.chips import ChipRequirements
    from cosim.verbs.diff.pair import PairOptions, diff_folders
    from cosim.verbs.diff.table import format_difference
    from cosim.verbs.montecarlo.keep import Places

    if to.output is not None:
        check_outputs("diff", to.output, to.json_file)
    else:
        check_json(to.json_file)
    with progress_bar("causes") as progress:
        judging = ChipRequirements(asking.specs, Places(asking.pdk_root, asking.technology))
        difference = diff_folders(run_a, run_b, PairOptions(judging, progress))
    click.echo("\n".join(format_difference(difference)))
    if to.output is not None:
        from cosim.base.store import write_results, write_texts
        from cosim.verbs.diff.page import format_page_of

        take_folder("diff", to.output)
        write_results(to.output, {"diff.json": difference})
        write_texts(to.output, {"diff.html": format_page_of(difference)})
        click.echo(f"\npage: {to.output / 'diff.html'}")
    write_json(to.json_file, difference)
    if to.exit_code and not difference.nothing:
        raise SystemExit(1)
