"""Command `cosim merge`: join the shards of a Monte Carlo run to the whole run."""

from dataclasses import dataclass, replace
from pathlib import Path

from cosim.base.errors import InputError
from cosim.cli.session import VerbSession
from cosim.cli.verb import FILE, Result, argument, call, option, parse, verb
from cosim.verbs.common import check_outputs, jobs_option, timeout_option


@dataclass(frozen=True, kw_only=True)
class MergeOptions:
    """Options of `cosim merge`: folders of the shards, folder of the whole run, and worker processes."""

    folders: tuple[Path, ...] = argument("FOLDER...", FILE, nargs=-1, required=True)
    output: Path = option("Folder of the whole run.", FILE, Path("runs/montecarlo"), flags=("-o", "--output"))
    jobs: int = jobs_option()
    timeout: float = timeout_option()


def run(options: MergeOptions, session: VerbSession) -> Result:
    """Join the FOLDERs that cosim montecarlo --shard wrote to one run.

    The result has the same bytes as if one machine had run all chips with the same command without --shard: store,
    figures, audit and page. Run it where that command would run, with the same files in place.
    """
    from cosim.base.settings import SETTINGS_FILE
    from cosim.verbs.montecarlo.command import command as montecarlo
    from cosim.verbs.montecarlo.keep import merge_stores
    from cosim.verbs.montecarlo.store import VERB

    folders, output = options.folders, options.output
    check_outputs(VERB, output)
    for folder in folders:
        if not folder.is_dir():
            raise InputError(f"{folder}: no such folder; give the folders that `cosim montecarlo --shard` wrote")
    settings = folders[0] / SETTINGS_FILE
    if not settings.is_file():
        raise InputError(f"{folders[0]}: {SETTINGS_FILE} is missing, which says what was run; run its --shard again")
    merge_stores(folders, output)
    whole, _ = parse(montecarlo, ["--config", str(settings)])
    return call(
        montecarlo, replace(whole, output=output, jobs=options.jobs, timeout=options.timeout), echo=session.echo
    )


command = verb(MergeOptions, run)
