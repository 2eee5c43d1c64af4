"""cosim merge: the parts of a Monte Carlo run, made apart, as the run that they are parts of."""

from pathlib import Path

import click

from cosim.base.errors import InputError
from cosim.cli.help import Verb
from cosim.cli.options import FILE, jobs_option, timeout_option
from cosim.verbs.common import check_outputs


@click.command(cls=Verb)
@click.argument("folders", metavar="FOLDER...", type=FILE, nargs=-1, required=True)
@click.option("-o", "--output", type=FILE, default=Path("runs/montecarlo"), help="Folder of the whole run.")
@jobs_option
@timeout_option
def command(folders: tuple[Path, ...], output: Path, jobs: int, timeout: float) -> None:
    """Join the FOLDERs that cosim montecarlo --shard wrote to one run.

    The result has the same bytes as if one machine had run all chips with the same command without --shard: store,
    figures, audit and page. Run it where that command would run, with the same files in place.
    """
    from cosim.base.settings import SETTINGS_FILE
    from cosim.verbs.montecarlo.command import command as montecarlo
    from cosim.verbs.montecarlo.merge import merge_stores
    from cosim.verbs.montecarlo.store import VERB

    check_outputs(VERB, output)
    settings = folders[0] / SETTINGS_FILE
    if not settings.is_file():
        raise InputError(f"{folders[0]}: {SETTINGS_FILE} is missing, which says what was run; run its --shard again")
    merge_stores(folders, output)
    asked = ["--config", str(settings), "-o", str(output), "-j", str(jobs), "--timeout", str(timeout)]
    montecarlo.main(asked, prog_name="cosim montecarlo", standalone_mode=False)
