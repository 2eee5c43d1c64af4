"""Words that pages use for the keys of results, formats for the values, and a network's answers in words."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cosim.base.quantities import format_quantity
from cosim.engines.engine import NO_CLASS
from cosim.network.types import Network
from cosim.results.html import show
from cosim.technology.types import Technology

VARIATION = {
    "none": "without any deviation",
    "local": "with mismatch of each transistor",
    "global": "with process, supply and temperature of their own",
    "all": "with mismatch of each transistor, and process, supply and temperature of their own",
}


@dataclass(frozen=True)
class Word:
    """The words that a page uses for a key; shown: a function that formats the key's value."""

    words: str
    shown: Callable[[object], str] = show


def _in(unit: str, factor: float = 1.0) -> Callable[[object], str]:
    """Return a function that formats a value in a unit: with an SI prefix, or times `factor` without a prefix."""

    def shown(value: object) -> str:
        if not isinstance(value, int | float) or isinstance(value, bool):
            return show(value)
        return format_quantity(value, unit, 4) if factor == 1.0 else f"{factor * value:.4g} {unit}"

    return shown


def _area(value: object) -> str:
    return f"{value:,.0f} um2" if isinstance(value, int | float) else show(value)


def _celsius(value: object) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"{' to '.join(f'{one:g}' for one in value)} °C"
    return f"{value:g} °C" if isinstance(value, int | float) else show(value)


def _range(value: object) -> str:
    """Format the ends of a range, fractions, in per cent."""
    ends = value if isinstance(value, Sequence) and not isinstance(value, str) else ()
    return f"{' to '.join(f'{100 * one:g}' for one in ends)} %"


def _slopes(value: object) -> str:
    """Format pairs (current in A, slope factor) as text."""
    pairs = value if isinstance(value, Sequence) and not isinstance(value, str) else ()
    return ", ".join(f"{slope:.4g} at {format_quantity(current, 'A')}" for current, slope in pairs) or "none"


def _counts(value: object) -> str:
    return ", ".join(f"{count} {name}" for name, count in value.items()) if isinstance(value, Mapping) else show(value)


def _named(names: Mapping[str, str]) -> Callable[[object], str]:
    return lambda value: names.get(str(value), show(value))


WORDS = {
    "a_beta": Word("mismatch of the current factor, one device", _in("% um", 1e8)),
    "a_vt": Word("mismatch of the threshold voltage, one device", _in("mV um", 1e9)),
    "abstol": Word("tolerance of currents", _in("A")),
    "area": Word("gate areas over drawn ones"),
    "bias_pins": Word("bias pins"),
    "bias_scale": Word("bias currents over nominal ones"),
    "calibration": Word("calibration"),
    "capacitor_area_um2": Word("capacitors' area", _area),
    "cell": Word("circuit of a recurrent unit"),
    "celsius": Word("temperature", _celsius),
    "chgtol": Word("tolerance of charges", _in("C")),
    "chips": Word("chips"),
    "coefficients": Word("devices"),
    "comparator_devices": Word("devices in parallel in a comparator"),
    "compile": Word("compiled"),
    "corner": Word("corner"),
    "cosim": Word("cosim"),
    "design": Word("design"),
    "devices": Word("transistors that vary"),
    "edits": Word("edits of the netlist", lambda value: "; ".join(value) if isinstance(value, list) else show(value)),  # pyright: ignore
    "engine": Word("engine"),
    "gate_area_um2": Word("gates' area", _area),
    "gmin": Word("least conductance", _in("S")),
    "headroom": Word("rungs beyond the states seen"),
    "i_unit": Word("current of software 1.0", _in("A")),
    "i_unit_a": Word("current of software 1.0", _in("A")),
    "input_scale": Word("inputs over nominal ones"),
    "kind": Word("chips vary", _named(VARIATION)),
    "largest_rounding": Word("largest rounding of a weight"),
    "left_out": Word("cells left out", lambda value: ", ".join(value) if isinstance(value, Mapping) else show(value)),
    "lost": Word("parameters that became zero or were cut"),
    "made_with": Word("made with"),
    "mismatch_dl": Word("added to a drawn length for mismatch", _in("um", 1e6)),
    "mismatch_dw": Word("added to a drawn width for mismatch", _in("um", 1e6)),
    "name": Word("name of the model"),
    "netlist": Word("edited netlist"),
    "network": Word("network"),
    "nfet": Word("n transistors"),
    "options": Word("options"),
    "overridden_pins": Word("bias pins changed by --overrides"),
    "overridden_transistors": Word("transistors changed by --overrides"),
    "overrides": Word("overrides"),
    "parameters": Word("parameters"),
    "pdk_root": Word("folder of the foundry kits"),
    "pedestal": Word("pedestal of a current, of software 1.0"),
    "pfet": Word("p transistors"),
    "reltol": Word("relative tolerance"),
    "replicates": Word("replicates"),
    "response": Word("slope factor by current density", _slopes),
    "samples": Word("test samples"),
    "samples_hash": Word("test samples"),
    "sampling": Word("drawn by"),
    "saturate": Word("too large weights are cut"),
    "seed": Word("seed"),
    "simulator": Word("simulator"),
    "simulator_of_calibration": Word("calibration measured with"),
    "slope_factor": Word("slope factor"),
    "spread_vt": Word("standard deviation of the threshold voltage over chips", _in("V")),
    "statuses": Word("parameters, by how they were built", _counts),
    "supplies": Word("supply over the nominal one", _range),
    "supply_v": Word("supply", _in("V")),
    "t_step_s": Word("frame", _in("s")),
    "task": Word("task"),
    "tau": Word("time constant of the ladders", _in("s")),
    "technology": Word("technology"),
    "transistors": Word("transistors"),
    "trtol": Word("tolerance of the step in time, relative"),
    "unit_devices": Word("unit devices"),
    "units_per_weight_1": Word("unit devices of weight 1"),
    "variation": Word("variation"),
    "vntol": Word("tolerance of voltages", _in("V")),
    "xmu": Word("weight of the trapezoidal rule"),
}


def words_of(key: str) -> str:
    """Return the words that pages use for a key; the key itself, with spaces for underscores, if it has no words."""
    return WORDS[key].words if key in WORDS else key.replace("_", " ")


def worded(values: Mapping[str, object], above: str = "") -> Iterator[tuple[str, str]]:
    """Yield (name, value) as text for each entry of a nested mapping; above: begins each name."""
    for key, value in values.items():
        shown = WORDS[key].shown if key in WORDS else show
        if shown is show and isinstance(value, Mapping) and value:
            yield from worded(value, f"{above}{words_of(key)}: ")
        else:
            yield above + words_of(key), "none" if value is None else shown(value)


def say_constant(states: Mapping[str, int]) -> str:
    """Return a sentence that names the cells that are always in one state; empty if there are none.
    states: name of a cell -> its constant state."""
    if not states:
        return ""
    named = ", ".join(name if state == 0 else f"{name} (state {state})" for name, state in states.items())
    count = "1 cell is" if len(states) == 1 else f"{len(states)} cells are"
    return f"{count} always in the same state, whatever the input: {named}"


def say_conditions(technology: Technology) -> str:
    """Return corner, temperature and supply of a technology as text."""
    return f"{technology.corner}, {technology.celsius:g} °C, {technology.supply:g} V"


def network_name(network: Network) -> str:
    """Return the name of a network: the one that its user gave, else one such as digits_d8.

    digits is the task, 8 the width of the recurrent layers.
    """
    if network.name:
        return network.name
    widths = [str(layer.width) for layer in network.recurrent_layers]
    return f"{network.task or 'network'}_d{'-'.join(widths[:1] if len({*widths}) == 1 else widths)}"


def say_answer(network: Network, answer: ArrayLike) -> str:
    """Return a network's answer to one sample as text: label of a class, `none` for NO_CLASS, or numbers (outputs,)."""
    found = np.asarray(answer)
    if not found.ndim and found == NO_CLASS:
        return "none"
    if found.ndim:
        return ", ".join(f"{value:.4g}" for value in found)
    return network.labels[int(found)] if network.labels else str(int(found))


def say_target(network: Network, target: ArrayLike) -> str:
    """Return the target of one sample as text: the word `class` or `target`, then the label or the numbers."""
    return f"{'target' if np.ndim(target) else 'class'} {say_answer(network, target)}"
