"""Command `cosim diff`: compare two finished runs."""

from dataclasses import dataclass
from pathlib import Path

from cosim.cli.progress import progress_bar
from cosim.cli.session import VerbSession
from cosim.cli.verb import FILE, Result, argument, option, switch, verb
from cosim.verbs.common import check_json, check_outputs, json_option, pdk_root_option


@dataclass(frozen=True, kw_only=True)
class DiffOptions:
    """Options of `cosim diff`: two folders, folder of the result, specs for chips, and where the technology is now."""

    run_a: Path = argument("RUN_A", FILE)
    run_b: Path = argument("RUN_B", FILE)
    output: Path | None = option("Folder for diff.html and diff.json.", FILE, flags=("-o", "--output"))
    json_file: Path | None = json_option()
    exit_code: bool = switch("Exit with status 1 where anything differs.")
    specs: tuple[str, ...] = option(
        "What chips of both runs must do [default: each run's own].", flags=("--spec",), multiple=True
    )
    pdk_root: Path | None = pdk_root_option()
    technology: Path | None = option("The .toml of both runs' own technology, where it has moved.", FILE)


def run(options: DiffOptions, session: VerbSession) -> Result:
    """Say what changed between two finished runs, by how much, and where.

    RUN_A and RUN_B are folders of compare, simulate, power, montecarlo, sweep or demo. What differs in settings,
    network, technology and versions; every figure's difference B - A with a 95 % interval and a test, paired on the
    same samples and chips where they are the same; samples decided otherwise, chips whose verdict turned with the unit
    that turns it, and units whose states moved. Nothing is simulated.
    """
    from cosim.verbs.diff.page import difference_page
    from cosim.verbs.diff.pair import diff_folders
    from cosim.verbs.montecarlo.keep import Places

    output = options.output
    if output is not None:
        check_outputs("diff", output, options.json_file)
    else:
        check_json(options.json_file)
    with progress_bar("causes") as progress:
        places = Places(options.pdk_root, options.technology)
        difference = diff_folders(options.run_a, options.run_b, options.specs, places, progress)
    if output is not None:
        from cosim.base.store import write_results, write_texts
        from cosim.results.page import format_pages

        session.take_folder("diff", output)
        write_results(output, {"diff.json": difference})
        write_texts(output, {"diff.html": format_pages([difference_page(difference)])})
    return Result(
        difference,
        difference_page(difference, picture=False),
        report="" if output is None else f"page: {output / 'diff.html'}",
        fault="" if options.exit_code and not difference.nothing else None,
    )


command = verb(DiffOptions, run)
