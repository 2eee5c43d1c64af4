"""Choice of an automaton's form: that of the smallest drawn area, in the default technology."""

from dataclasses import dataclass
from itertools import chain

from cosim.automata.cascade import network_of_cascade
from cosim.automata.chains import cascades
from cosim.automata.compose import network_of_product
from cosim.automata.network import network_of
from cosim.automata.parts import describe, products
from cosim.compiler.design import block_areas
from cosim.compiler.passes import compile_network
from cosim.network.automaton import Automaton
from cosim.network.types import Network
from cosim.technology.calibration import load_calibration
from cosim.technology.catalog import DEFAULT_TECHNOLOGY, load_technology
from cosim.technology.scale import units_for
from cosim.verbs.calibrate.find import shipped_path


@dataclass(frozen=True)
class CircuitSize:
    """words: its parts; area: gates and capacitors as drawn, m2."""

    words: str
    network: Network
    transistors: int
    area: float


def forms(automaton: Automaton, task: str) -> list[CircuitSize]:
    """Return the one-hot form, then the others whose readout works, the smallest first. Raises InputError as
    `network_of`."""
    one_hot = network_of(automaton, task)
    plain, *others = products(automaton)
    found = [(describe(plain), one_hot)]
    built = ((describe(product), network_of_product(automaton, product, task)) for product in others)
    built = chain(built, ((one.words, network_of_cascade(automaton, one, task)) for one in cascades(automaton)))
    found += [(words, network) for words, network in built if network is not None]
    first, *rest = (_form(words, network) for words, network in found)
    return [first, *sorted(rest, key=lambda form: form.area)]


def smallest(found: list[CircuitSize]) -> CircuitSize:
    """Return the form of the smallest area, of those with no more transistors than the one-hot one, which is the
    first."""
    return min((form for form in found if form.transistors <= found[0].transistors), key=lambda form: form.area)


def _form(words: str, network: Network) -> CircuitSize:
    technology = load_technology(DEFAULT_TECHNOLOGY)
    calibration = load_calibration(shipped_path(technology.name, units_for(network.weight_grid)))
    design = compile_network(network, technology, calibration)
    return CircuitSize(words, network, design.assembly.transistors, sum(map(sum, block_areas(design).values())))
