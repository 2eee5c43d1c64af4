"""A table for a terminal and for a page."""

from collections.abc import Sequence

from cosim.papers.tables.run import FinishedExperiment
from cosim.papers.tables.table import PaperTable

_HEADS = ("row", "figure", "published", "here", "seeds", "parameters", "iterations", "seconds")
_FACTS = ("settings", "what differs")


def table_text(rows: Sequence[FinishedExperiment]) -> list[str]:
    """Format rows as columns, and below them the settings of the rows that share them."""
    cells = [_HEADS, *(line for row in rows for line in _lines(row))]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    shared: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        shared.setdefault((row.settings, row.differs), []).append(row.name)
    for (settings, differs), names in shared.items():
        whose = "all rows" if len(shared) == 1 else "; ".join(names)
        lines += ["", f"{whose}", f"  {settings}", f"  differs: {differs}"]
    return lines


def table_page(table: PaperTable, command: str, rows: Sequence[FinishedExperiment]) -> str:
    """Format a page in Markdown: the table's title, the command that makes it, every row."""
    heads = (*_HEADS, *_FACTS)
    body = [heads, tuple("---" for _ in heads)]
    for row in rows:
        first, *others = _lines(row)
        body += [(*first, row.settings, row.differs), *((*line, "", "") for line in others)]
    lines = [f"| {' | '.join(line)} |" for line in body]
    return "\n".join([f"# {table.name}", "", table.title, "", f"    {command}", "", *lines, ""])


def _lines(row: FinishedExperiment) -> list[tuple[str, ...]]:
    """Return the figures of a row as cells of text, one line for each figure."""
    seeds = str(len(row.seeds)) if row.seeds else "-"
    facts = (seeds, f"{row.parameters}", _range(row.iterations), _range([round(one) for one in row.seconds]))
    if not any(row.iterations):
        facts = (seeds, "", "", "")
    return [
        (
            row.name if not place else "",
            one.name,
            one.published or "-",
            one.shown(),
            *(facts if not place else ("",) * 4),
        )
        for place, one in enumerate(row.figures)
    ]


def _range(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"
