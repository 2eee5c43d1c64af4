"""The pictures of a page as files, for a paper or a slide."""

import re
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

from cosim.base.claim import check_replaceable, starts_with
from cosim.base.write import make_folder, write_together
from cosim.results.html import Picture
from cosim.results.page import Blocks, Grid, Page

_STARTS = b"\x89PNG", b"<svg", b"<?xml"
_ENDINGS = {"svg+xml": "svg", "png": "png"}


def name_pictures(pages: Sequence[Page]) -> dict[str, Picture]:
    """Return file name -> picture, in the pages' order: verb, section and, from the second one there on, a number."""
    found: dict[str, Picture] = {}
    for page in pages:
        for section in page.sections:
            for picture in _pictures(section.blocks):
                stem = re.sub(r"[^a-z0-9]+", "-", f"{page.verb} {section.name}".lower()).strip("-")
                found[_free(stem, _ENDINGS[picture.kind], found)] = picture
    return found


def write_pictures(folder: Path, pages: Sequence[Page]) -> tuple[str, ...]:
    """Write the pages' pictures into a folder; their names. Raises InputError where it cannot, or where one would
    replace what is no picture."""
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
    """Return the first name of stem, stem-2, stem-3, ... that no picture has, with its ending."""
    stems = {Path(name).stem for name in taken}
    names = (stem if number == 1 else f"{stem}-{number}" for number in count(1))
    return f"{next(name for name in names if name not in stems)}.{ending}"
