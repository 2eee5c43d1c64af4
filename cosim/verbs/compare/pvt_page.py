"""The page of a sweep over process, supply and temperature."""

from cosim.base.quantities import format_quantity
from cosim.compiler.design import Design
from cosim.results.figures import figure_bytes
from cosim.results.html import Picture
from cosim.results.intervals import IntervalEnds
from cosim.results.metrics import percent, within
from cosim.results.page import Facts, Page, Section, Table
from cosim.verbs.bias import WORDS
from cosim.verbs.compare.figures import draw_pvt
from cosim.verbs.compare.pvt import PvtCondition, Sweep
from cosim.verbs.provenance import circuit_facts, origins, subject_of
from cosim.verbs.trust import say_audit
from cosim.verbs.words import worded

CONDITIONS = 6  # that are named, where there are more
_LEAST = 700  # pixels under which the picture's words cannot be read


def pvt_page(design: Design, sweep: Sweep, made_with: dict[str, str]) -> Page:
    """Return the page of a sweep over conditions. made_with: name of the simulator -> its version."""
    subject, rows = subject_of(design), sweep.conditions
    one = (sweep.worst or rows)[0]
    bounds = within(one.task_agreement_interval or IntervalEnds(0.0, 1.0))
    count, simulator = len(rows), ", ".join(made_with)
    powers = [row.power_w for row in rows if row.power_w is not None]
    span = " to ".join(format_quantity(power, "W") for power in (min(powers), max(powers))) if powers else "none"
    verdict = f"at worst {percent(one.task_agreement)} of decisions as software {bounds}"
    return Page(
        verb="compare --pvt",
        subject=subject,
        title=f"{subject.name} on {design.technology.name} in {count} conditions: {verdict}",
        lead=f"{one.samples + one.failed} test samples in each of {count} corners, temperatures and supplies, by "
        f"{simulator} on {design.assembly.transistors} transistors compiled once; {sweep.failed} simulations failed.",
        answer=f"{say_worst(sweep)} It stands on {say_basis(sweep)}.",
        cards=(
            (percent(one.task_agreement), f"decisions as software at worst {bounds}"),
            (percent(min(row.state_agreement for row in rows), 2), "of the states equal the software's at worst"),
            (span, "mean supply power"),
            (str(sweep.failed), "simulations failed"),
        ),
        notes=() if sweep.clipped is None else (f"{sweep.clipped}.",),
        sections=(
            Section("States and decisions equal to the software's", (_picture(sweep),)),
            Section("Every condition", (condition_table(sweep), f"Not in power: {', '.join(sweep.power_outside)}.")),
            Section("Audit", tuple(f"{line}." for line in say_audit(sweep.audit))),
            Section("The circuit", (Facts(tuple(worded(circuit_facts(design)))),), detail=True),
        ),
        provenance=origins(design, made_with),
    )


def say_worst(sweep: Sweep) -> str:
    """Return a sentence with the worst conditions."""
    if not sweep.worst:
        return "All conditions have equal figures."
    places = [_where(row) for row in sweep.worst]
    more = f" and {len(places) - CONDITIONS} more" if len(places) > CONDITIONS else ""
    return f"Worst: {'; '.join(places[:CONDITIONS])}{more}."


def _where(row: PvtCondition) -> str:
    return f"{row.corner}, {row.celsius:g} °C, {row.supply_v:.4g} V"


def _picture(sweep: Sweep) -> Picture:
    caption = (
        "A column for each corner: states that differ from the software's, on a logarithmic scale; samples decided "
        "otherwise than the software decides; power over that of the framed, nominal condition."
    )
    alt = f"{caption} {say_worst(sweep)}"
    return Picture("png", figure_bytes(draw_pvt(sweep), "png"), alt, caption, _LEAST)


def condition_table(sweep: Sweep) -> Table:
    """Return the figures of every condition."""
    head = ("corner", "temperature", "supply", "states", "decisions", "95 % interval", "accuracy", "power")
    return Table(head, tuple(map(_row, sweep.conditions)), tuple(range(1, len(head))))


def _row(row: PvtCondition) -> tuple[str, ...]:
    where = row.corner, f"{row.celsius:g} °C", f"{row.supply_v:.4g} V"
    if row.accuracy is None or row.power_w is None or row.task_agreement_interval is None:
        return (*where, "failed", "", "", "", "")
    same = percent(row.state_agreement, 2), percent(row.task_agreement), within(row.task_agreement_interval)
    return (*where, *same, percent(row.accuracy), format_quantity(row.power_w, "W"))


def say_basis(sweep: Sweep) -> str:
    """Return what bias currents the figures of a sweep rest on; of ideal ones also how to see others."""
    ideal = sweep.stands_on == WORDS["constant"]
    return sweep.stands_on + ("; for those of a chip, add --bias reference or --bias tracking" if ideal else "")
