"""The HTML report of a comparison: one self-contained page."""

import base64
import html
from typing import Any

from cosim.analysis.agreement import ENGINES
from cosim.analysis.tables import percent
from cosim.units import format_quantity

_STYLE = """
:root { color-scheme: light; --ink: #1c1c1c; --soft: #5f6368; --line: #dcdfe3; --accent: #0b5394; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); margin: 0 auto; max-width: 60rem; padding: 1.5rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
p.lead, figcaption { color: var(--soft); } figure { margin: 1rem 0; } img { max-width: 100%; height: auto; }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .35rem .8rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.n, th.n { text-align: right; } .cards { display: flex; flex-wrap: wrap; gap: 1rem; margin: 1.2rem 0; }
.card { border: 1px solid var(--line); border-radius: 6px; padding: .6rem 1rem; flex: 1 1 9rem; }
.card b { display: block; font-size: 1.5rem; color: var(--accent); }
.card span { color: var(--soft); font-size: .85rem; }
@media print { body { max-width: none; padding: 0; } figure, .card, table { break-inside: avoid; } }
"""


def format_report(
    title: str, summary: dict[str, Any], design: dict[str, Any], settings: dict[str, Any], pictures: dict[str, bytes]
) -> str:
    """The page. summary: of the comparison; design: of the compiled network; pictures: caption -> PNG bytes."""
    figures = "".join(
        f'<figure><img alt="{_text(caption)}" src="data:image/png;base64,{base64.b64encode(png).decode()}">'
        f"<figcaption>{_text(caption)}</figcaption></figure>"
        for caption, png in pictures.items()
    )
    sources = summary["error_sources"]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_text(title)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{_text(title)}</h1>"
        f'<p class="lead">{summary["samples"]} test samples, each simulated by ngspice on {summary["transistors"]} '
        f"transistors of {_text(design['technology'])}; {summary['failed']} simulations failed.</p>"
        f'<div class="cards">{_cards(summary)}</div>'
        f"<h2>Three engines, the same inputs</h2>{_engines(summary)}"
        f"<h2>Where states change</h2><p>Dominant: <b>{_text(summary['dominant_error_source'])}</b>.</p>"
        + _table(
            ("step of realism", "states changed"),
            [
                ("rounding of weights to the mirror grid", sources["rounding"]),
                ("statics: what calibration leaves of gains, thresholds and levels", sources["statics"]),
                ("dynamics: settling, charge injection, glitches (ngspice against behavioral)", sources["dynamics"]),
            ],
        )
        + f"<h2>Figures</h2>{figures}"
        f"<h2>Design</h2>{_table(('quantity', 'value'), list(design.items()))}"
        f"<h2>Settings</h2>{_table(('setting', 'value'), list(settings.items()))}"
        "</body></html>\n"
    )


def _cards(summary: dict[str, Any]) -> str:
    low, high = summary["task_agreement_interval"]
    cards = (
        (percent(summary["accuracy"]["ngspice"]), "accuracy of the transistors"),
        (percent(summary["state_agreement"], 2), f"of {summary['state_bits']} states equal the software's"),
        (percent(summary["task_agreement"]), f"same decision [{percent(low)}, {percent(high)}]"),
        (format_quantity(summary["power_w"]["ngspice"], "W"), "mean supply power"),
    )
    return "".join(
        f'<div class="card"><b>{_text(value)}</b><span>{_text(label)}</span></div>' for value, label in cards
    )


def _engines(summary: dict[str, Any]) -> str:
    rows = []
    for engine in ENGINES:
        low, high = summary["accuracy_interval"][engine]
        power = summary["power_w"][engine]
        watt = "" if power is None else format_quantity(power, "W")
        rows.append((engine, percent(summary["accuracy"][engine]), f"{percent(low)} to {percent(high)}", watt))
    return _table(("engine", "accuracy", "95 % interval (Clopper-Pearson)", "mean power"), rows)


def _table(head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    cells = "".join(f"<th>{_text(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{_text(_show(value))}</td>" for value in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table></div>'


def _show(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {item}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _text(value: Any) -> str:
    return html.escape(str(value))
