"""Command `cosim report`: write one page of the results that verbs have left in their folders."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from cosim.base.claim import check_replaceable, starts_with
from cosim.base.errors import InputError
from cosim.base.write import make_folder, write_together
from cosim.cli.progress import say
from cosim.cli.session import VerbSession
from cosim.cli.settings import say_version
from cosim.cli.verb import FILE, Result, argument, option, switch, verb
from cosim.results.html import Picture
from cosim.results.page import Blocks, Grid, Page
from cosim.verbs.common import pdk_root_option


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """Options of `cosim report`: folders, file of the page, folder of pictures, and where the technology is now."""

    folders: tuple[Path, ...] = argument("FOLDER...", FILE, nargs=-1, required=True)
    output: Path | None = option("HTML file.  [default: FOLDER/report.html]", FILE, flags=("-o", "--output"))
    pdk_root: Path | None = pdk_root_option()
    technology: Path | None = option("The .toml of the run's own technology, where it has moved.", FILE)
    pictures: Path | None = option("Put each picture there, too, as .svg or .png.", FILE, metavar="FOLDER")
    no_waveforms: bool = switch("Leave the worst chip's waveforms out; nothing is simulated.")


def run(options: ReportOptions, _session: VerbSession) -> Result:
    """Write one page of what verbs have left in the folders FOLDER, all of one network.

    One self-contained HTML file, a chapter for each folder. Of a Monte Carlo run: yield with its interval, histograms
    over chips, yield curve, both engines chip by chip, contributions, the worst chip's waveforms, the mapping of
    parameters to transistors, power, schematics of the cells. The worst chip is simulated once more; without ngspice
    the page says so instead. Other verbs' pages are shown as they were written.
    """
    from cosim.base.claim import owner_of
    from cosim.base.write import write_atomically
    from cosim.results.kept_page import REPORT_FILE, check_same, has_page, read_page
    from cosim.results.page import format_pages
    from cosim.verbs.montecarlo.keep import Places
    from cosim.verbs.montecarlo.page import check_page, read_run
    from cosim.verbs.montecarlo.store import RUN_FILE, VERB

    folders, pictures = options.folders, options.pictures
    first, *others = folders
    if options.output is None and others:
        raise InputError(f"{len(folders)} folders need a file for their page; name it with -o")
    output = options.output or first / REPORT_FILE
    if others or output.parent != first:
        check_page(output)
    if pictures is not None and pictures.exists() and not pictures.is_dir():
        raise InputError(f"--pictures {pictures}: must be a folder, but is a file; name another")
    for one in folders:
        if not one.is_dir():
            raise InputError(f"{one}: must be a folder of a run, but is {'a file' if one.exists() else 'not there'}")
        owner = owner_of(one)
        if not has_page(one) and owner != VERB and not (one / RUN_FILE).is_file():
            whose = f"cosim {owner} has not left its page there (page.json); run it again"
            nobody = "no verb has left its page there (page.json); give the folder of a run, what -o of a verb named"
            raise InputError(f"{one}: {nobody if owner is None else whose}")
    places = Places(options.pdk_root, options.technology)
    pages = [
        read_page(one) if has_page(one) else read_run(one, places, waveforms=not options.no_waveforms, say=say)
        for one in folders
    ]
    for one, page in zip(folders, pages, strict=True):
        say_version(one, page.repeat)
    check_same(list(zip(folders, pages, strict=True)))
    write_atomically(output, format_pages(pages).encode())
    written = [] if pictures is None else [pictures / name for name in write_pictures(pictures, pages)]
    return Result(lines=[f"report: {output}", *(f"picture: {path}" for path in written)])


_STARTS = b"\x89PNG", b"<svg", b"<?xml"
_ENDINGS = {"svg+xml": "svg", "png": "png"}


def name_pictures(pages: Sequence[Page]) -> dict[str, Picture]:
    """Return the pictures of pages by file name, in the pages' order.

    A name has verb and section, and a number from the second picture of the same name on.
    """
    found: dict[str, Picture] = {}
    for page in pages:
        for section in page.sections:
            for picture in _pictures(section.blocks):
                stem = re.sub(r"[^a-z0-9]+", "-", f"{page.verb} {section.name}".lower()).strip("-")
                found[_free(stem, _ENDINGS[picture.kind], found)] = picture
    return found


def write_pictures(folder: Path, pages: Sequence[Page]) -> tuple[str, ...]:
    """Write the pages' pictures into a folder; return their file names.

    Raises InputError where a file cannot be written, or would replace one that is no picture.
    """
    found = name_pictures(pages)
    make_folder(folder)
    check_replaceable({folder / name: starts_with(*_STARTS) for name in found}, "--pictures")
    write_together({folder / name: picture.content for name, picture in found.items()})
    return tuple(found)


def _pictures(blocks: Blocks) -> Iterator[Picture]:
    for block in blocks:
        if isinstance(block, Picture):
            yield block
        elif isinstance(block, Grid):
            yield from (one for one in block.blocks if isinstance(one, Picture))


def _free(stem: str, ending: str, taken: dict[str, Picture]) -> str:
    """Return the first file name of stem, stem-2, stem-3, ... that is not taken, with its ending."""
    stems = {Path(name).stem for name in taken}
    names = (stem if number == 1 else f"{stem}-{number}" for number in count(1))
    return f"{next(name for name in names if name not in stems)}.{ending}"


command = verb(ReportOptions, run)
