"""The page of a sensitivity: a margin's spread, the transistors that decide it, and the states likeliest to flip."""

from collections.abc import Sequence

from cosim.base.quantities import format_quantity
from cosim.compiler.design import Design
from cosim.results.metrics import percent
from cosim.results.page import Page, Section, Table
from cosim.verbs.provenance import origins, subject_of
from cosim.verbs.sensitivity.study import Decision, Sensitivities, Sensitivity

_PINS = 5  # that are shown


def sensitivity_page(design: Design, sample: int, found: Sensitivities, top: int) -> Page:
    """Return the page of one sample's sensitivities, with its `top` most decisive transistors."""
    decided, *other = found.outputs
    what = f"output {decided} over {other[0]}" if other else f"output {decided}"
    value, sigma = format_quantity(found.value_a, "A"), format_quantity(found.sigma_a, "A")
    shown = found.devices[:top]
    explained = percent(sum(one.share for one in shown))
    pins = sorted(found.pins.items(), key=lambda pin: -abs(pin[1]))[:_PINS]
    return Page(
        verb="sensitivity",
        subject=subject_of(design),
        title=f"test sample {sample}: {what} is {value}, which mismatch moves by {sigma} (1 sigma)",
        lead=f"{len(found.devices)} transistors. {len(shown)} of them explain {explained} of the variance together.",
        cards=(),
        sections=(
            Section("The transistors that decide it", (_devices(shown),)),
            Section("The states that are likeliest to flip", _decisions(found.decisions)),
            Section("Bias pins", (Table(("pin", "A per A"), tuple((pin, f"{by:+.4g}") for pin, by in pins), (1,)),)),
        ),
        provenance=origins(design),
    )


def _devices(shown: Sequence[Sensitivity]) -> Table:
    rows = tuple(
        (
            _inner(one.device),
            one.block,
            one.role or "",
            format_quantity(1e-3 * one.vt_shift, "A"),
            format_quantity(1e-2 * one.ln_beta, "A"),
            format_quantity(one.sigma_a, "A"),
            percent(one.share),
        )
        for one in shown
    )
    head = ("transistor", "block", "role", "by 1 mV", "by 1 % width", "sigma", "of the variance")
    return Table(head, rows, (3, 4, 5, 6))


def _decisions(decisions: Sequence[Decision]) -> tuple[Table, ...]:
    """Return a row for each of the least certain decisions, with its most decisive transistor; none without them."""
    rows = tuple(
        (
            one.cell,
            str(one.frame),
            format_quantity(one.margin_a, "A"),
            format_quantity(one.sigma_a, "A"),
            percent(one.flips),
            f"{_inner(one.devices[0].device)} {100 * one.devices[0].share:.0f} %",
        )
        for one in decisions
    )
    head = ("decision", "frame", "margin", "sigma", "flips", "most by")
    return (Table(head, rows, (1, 2, 3, 4)),) if rows else ()


def _inner(name: str) -> str:
    """Return a transistor's name within the network, for the page of `cosim sensitivity`."""
    return name.partition(".")[2]
