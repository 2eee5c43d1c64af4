"""An automaton in a page: its graph, or a table where that would be a tangle, and what a run did of its transitions."""

from cosim.base.quantities import format_quantity
from cosim.network.automaton import Automaton
from cosim.network.automaton_in import automaton_in
from cosim.network.types import Network
from cosim.results.figures import figure_bytes
from cosim.results.html import Picture
from cosim.results.metrics import percent
from cosim.results.page import Blocks, Grid, Table
from cosim.verbs.automaton.figure import describe_automaton, draw_automaton, is_drawn
from cosim.verbs.compare.transitions import Transition, Transitions
from cosim.verbs.trust import say_transitions

_POINTS, _READABLE = 72, 0.9  # of an inch; pixels that a point of a graph needs
NEVER = "never taken"


def format_automaton(network: Network, found: Transitions | None = None) -> Blocks:
    """Return the automaton in a network's weights as blocks, none where there is no automaton; found: what a run did of
    it, which is shown beside it."""
    automaton = automaton_in(network)
    if automaton is None:
        return ()
    graph = _graph(automaton, found) if is_drawn(automaton) else _table(automaton)
    return (graph,) if found is None else (_said(found), Grid((graph, _transitions(found))))


def _graph(automaton: Automaton, found: Transitions | None) -> Picture:
    figure = draw_automaton(automaton, found)
    wide = round(_READABLE * _POINTS * float(figure.get_size_inches()[0]))
    states, symbols = automaton.next.shape
    caption = (
        f"The automaton as it stands in the weights: {states} states, {symbols} symbols. In a circle the state's name, "
        "under it what is decided there."
    )
    if found is not None:
        caption += " Dashed: never taken. Red: led to a wrong state."
    alt = f"Graph of an automaton. {describe_automaton(automaton)}"
    return Picture("svg+xml", figure_bytes(figure, "svg"), alt, caption, wide)


def _table(automaton: Automaton) -> Table:
    """Return the table of an automaton: where each symbol leads from each state."""
    rows: list[tuple[str, ...]] = []
    for state, row in enumerate(automaton.next.tolist()):
        name = automaton.states[state] + (" (start)" if state == automaton.start else "")
        rows.append((name, automaton.labels[automaton.output[state]], *(automaton.states[to] for to in row)))
    return Table(("state", "decided", *automaton.symbols), tuple(rows), tall=True)


def _said(found: Transitions) -> str:
    text = (
        f"Transitions: {say_transitions(found)}. A frame belongs to the transition from the cell that was on before "
        "it; if each is right, every string is."
    )
    if found.margin_a is not None:
        text += (
            " Margin: how near any cell's candidate came to a threshold that would have turned it; the smallest is "
            f"{percent(found.margin_a / found.unit_a)} of the unit current."
        )
    return text


def _transitions(found: Transitions) -> Table:
    """Return a table with a row for each transition; margins and wrong states only where there are such."""
    measured = found.margin_a is not None
    head = ["state", "symbol", "next", "taken", *(["wrong"] if found.wrong else []), *(["margin"] if measured else [])]
    rows = tuple(_row(row, wrong=bool(found.wrong), measured=measured) for row in found.rows)
    return Table(tuple(head), rows, tuple(range(3, len(head))), tall=True)


def _row(row: Transition, *, wrong: bool, measured: bool) -> tuple[str, ...]:
    margin = "" if row.margin_a is None else format_quantity(row.margin_a, "A")
    named = row.state, row.symbol, row.next, str(row.taken or NEVER)
    return (*named, *((str(row.wrong),) if wrong else ()), *((margin,) if measured else ()))
