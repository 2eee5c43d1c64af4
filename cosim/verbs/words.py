"""Words for the keys of results on a page, the units of their values, and answers and targets of a network in words."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from cosim.base.quantities import format_quantity
from cosim.network.types import Network
from cosim.results.html import show
from cosim.technology.types import Technology

VARIATION = {
    "none": "without any deviation",
    "local": "with mismatch of each transistor",
    "global": "with process, supply and temperature of their own",
    "all": "with mismatch of each transistor, and process, supply and temperature of their own",
}


def _in(unit: str, factor: float = 1.0) -> Callable[[object], str]:
    """Return a function that writes a value with an SI prefix or, with a factor, in a unit that has none."""

    def shown(value: object) -> str:
        if not isinstance(value, int | float) or isinstance(value, bool):
            return show(value)
        return format_quantity(value, unit, 4) if factor == 1.0 else f"{factor * value:.4g} {unit}"

    return shown


def _area(value: object) -> str:
    return f"{value:,.0f} um2" if isinstance(value, int | float) else show(value)


def _celsius(value: object) -> str:
    return f"{value:g} °C" if isinstance(value, int | float) else show(value)


def _slopes(value: object) -> str:
    """Format pairs of a current and a slope factor."""
    pairs = value if isinstance(value, Sequence) and not isinstance(value, str) else ()
    return ", ".join(f"{slope:.4g} at {format_quantity(current, 'A')}" for current, slope in pairs) or "none"


def _counts(value: object) -> str:
    return ", ".join(f"{count} {name}" for name, count in value.items()) if isinstance(value, Mapping) else show(value)


def _named(names: Mapping[str, str]) -> Callable[[object], str]:
    return lambda value: names.get(str(value), show(value))


WORDS = {  # of a key, where they are not the key itself
    "a_beta": "mismatch of the current factor, one device",
    "a_vt": "mismatch of the threshold voltage, one device",
    "abstol": "tolerance of currents",
    "area": "gate areas over drawn ones",
    "bias_scale": "bias currents over nominal ones",
    "capacitor_area_um2": "capacitors' area",
    "cell": "circuit of a recurrent unit",
    "celsius": "temperature",
    "chgtol": "tolerance of charges",
    "coefficients": "devices",
    "compile": "compiled",
    "devices": "transistors that vary",
    "gate_area_um2": "gates' area",
    "gmin": "least conductance",
    "headroom": "rungs beyond the states seen",
    "i_unit": "current of software 1.0",
    "i_unit_a": "current of software 1.0",
    "input_scale": "inputs over nominal ones",
    "kind": "chips vary",
    "largest_rounding": "largest rounding of a weight",
    "left_out": "cells left out",
    "lost": "parameters that became zero or were cut",
    "mismatch_dl": "added to a drawn length for mismatch",
    "mismatch_dw": "added to a drawn width for mismatch",
    "name": "name of the model",
    "nfet": "n transistors",
    "pdk_root": "folder of the foundry kits",
    "pedestal": "pedestal of a current, of software 1.0",
    "pfet": "p transistors",
    "reltol": "relative tolerance",
    "response": "slope factor by current density",
    "samples": "test samples",
    "samples_hash": "test samples",
    "sampling": "drawn by",
    "saturate": "too large weights are cut",
    "simulator_of_calibration": "calibration measured with",
    "spread_vt": "standard deviation of the threshold voltage over chips",
    "statuses": "parameters, by how they were built",
    "supply_v": "supply",
    "t_step_s": "frame",
    "tau": "time constant of the ladders",
    "trtol": "tolerance of the step in time, relative",
    "units_per_weight_1": "unit devices of weight 1",
    "vntol": "tolerance of voltages",
    "xmu": "weight of the trapezoidal rule",
}
SHOWN: dict[str, Callable[[object], str]] = {  # how the value of a key is written, where not as `show` does
    "a_beta": _in("% um", 1e8),
    "a_vt": _in("mV um", 1e9),
    "abstol": _in("A"),
    "capacitor_area_um2": _area,
    "celsius": _celsius,
    "chgtol": _in("C"),
    "gate_area_um2": _area,
    "gmin": _in("S"),
    "i_unit": _in("A"),
    "i_unit_a": _in("A"),
    "kind": _named(VARIATION),
    "left_out": lambda value: ", ".join(value) if isinstance(value, Mapping) else show(value),
    "mismatch_dl": _in("um", 1e6),
    "mismatch_dw": _in("um", 1e6),
    "response": _slopes,
    "spread_vt": _in("V"),
    "statuses": _counts,
    "supply_v": _in("V"),
    "t_step_s": _in("s"),
    "tau": _in("s"),
    "vntol": _in("V"),
}


def words_of(key: str) -> str:
    """Return the words for a key; the key itself with spaces where it has none."""
    return WORDS.get(key, key.replace("_", " "))


def worded(values: Mapping[str, object], above: str = "") -> Iterator[tuple[str, str]]:
    """Yield (name, value) of a nested object in the words of verbs' pages, each with its unit."""
    for key, value in values.items():
        shown = SHOWN.get(key, show)
        if shown is show and isinstance(value, Mapping) and value:
            yield from worded(value, f"{above}{words_of(key)}: ")
        else:
            yield above + words_of(key), "none" if value is None else shown(value)


def say_constant(states: Mapping[str, int]) -> str:
    """Return a sentence of a verb's page on cells that are always in one state, by their names; empty for none."""
    if not states:
        return ""
    named = ", ".join(name if state == 0 else f"{name} (state {state})" for name, state in states.items())
    count = "1 cell is" if len(states) == 1 else f"{len(states)} cells are"
    return f"{count} always in the same state, whatever the input: {named}"


def say_conditions(technology: Technology) -> str:
    """Return corner, temperature and supply as the text of verbs' pages."""
    return f"{technology.corner}, {technology.celsius:g} °C, {technology.supply:g} V"


def network_name(network: Network) -> str:
    """Return the name of a network on a page: the one that its user gave it, else its task and the widths of its
    recurrent layers, such as digits_d8."""
    if network.name:
        return network.name
    widths = [str(layer.width) for layer in network.recurrent_layers]
    return f"{network.task or 'network'}_d{'-'.join(widths[:1] if len({*widths}) == 1 else widths)}"


def say_answer(network: Network, answer: ArrayLike) -> str:
    """Return the network's answer to one sample as text for a verb: the name of a class, or numbers (outputs,)."""
    found = np.asarray(answer)
    if found.ndim:
        return ", ".join(f"{value:.4g}" for value in found)
    return network.labels[int(found)] if network.labels else str(int(found))


def say_target(network: Network, target: ArrayLike) -> str:
    """Return one sample's target as text for a verb, with what it is."""
    return f"{'target' if np.ndim(target) else 'class'} {say_answer(network, target)}"
