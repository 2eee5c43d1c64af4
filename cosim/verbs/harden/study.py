"""Steps of a hardening: the circuit as given, trained on chips that vary, with more devices in mirrors, with trim bits.

Each step is one circuit whose chips the behavioral model counts. The steps end at the first circuit that has the yield
that is asked for, on its own chips and then on as many fresh ones.

Fields of `Hardening` are the keys of harden.json, see `json_object`: fractions, SI units and um2.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from cosim.cli.progress import say
from cosim.results.metrics import Estimate, percent, within
from cosim.verbs.explore.circuits import Circuits, unknown_to_trim
from cosim.verbs.explore.study import BITS, OVERRIDES, SearchTrial, shown_figure
from cosim.verbs.harden.mirrors import MirrorGroup, enlarge_mirrors, measure_mirrors, with_more_devices
from cosim.verbs.sweep.study import Value

AS_GIVEN = "as given"
FACTORS = (1.1, 1.2, 1.3, 1.5, 2.0, 3.0, 4.0)  # of the circuit's area
TRIM_BITS = (2, 3, 4)  # of the converters; docs/how-to/better-yield.md has what more of them bring


@dataclass(frozen=True)
class HardeningStep:
    """One circuit that a hardening tried.

    change: how it differs from the circuit that it improves on, in words; network: its file, below the folder of the
    hardening, or the name of the given file; circuit: what was drawn, its figures, or the reason why it was not
    possible.
    """

    change: str
    network: str
    circuit: SearchTrial


@dataclass(frozen=True)
class Hardening:
    """The result of a hardening, the content of harden.json.

    options: of montecarlo, without defaults; training: settings of the training, empty where none was asked for; spec:
    what a chip must do; least_yield: share of the chips that must do it; area_max: largest factor of the area;
    chosen: index of the step that is kept; mirrors: what the mismatch of each group of mirrors costs, empty if it was
    not asked; measured: index of the step on whose circuit that was measured.
    """

    network: str
    network_hash: str
    file: str
    technology: str
    options: Mapping[str, object]
    training: Mapping[str, object]
    spec: tuple[str, ...]
    least_yield: float
    area_max: float
    steps: tuple[HardeningStep, ...]
    chosen: int
    made_with: Mapping[str, str]
    mirrors: tuple[MirrorGroup, ...] = ()
    measured: int = 0

    @property
    def before(self) -> SearchTrial:
        """Return the circuit as given."""
        return self.steps[0].circuit

    @property
    def after(self) -> SearchTrial:
        """Return the circuit that the hardening chose."""
        return self.steps[self.chosen].circuit

    @property
    def met(self) -> bool:
        """Tell whether fresh chips of the chosen circuit have the yield that was asked for, and transistors agree."""
        found = self.after.fresh
        return found is not None and found.value >= self.least_yield and not self.after.refuted


@dataclass(frozen=True)
class TriedCircuit:
    """A step of a hardening at work, with the circuits of its network, from which the next step begins."""

    step: HardeningStep
    circuits: Circuits

    @property
    def own_yield(self) -> float:
        """Return the yield of the circuit on the chips that chose it; -1 for one that was not possible."""
        figures = self.step.circuit.figures
        return figures["yield"].value if figures else -1.0


@dataclass
class HardeningRun:
    """A hardening at work: the circuits that were tried so far.

    given: circuits of the network as given; train: trains the network on chips that vary, and returns (complaint or '',
    file of the network, circuits of it), None for no training; least_yield, area_max, mirrors, measured: as in
    `Hardening`; times: file of overrides -> devices in place of one, by mirrors.
    """

    given: Circuits
    train: Callable[[], tuple[str, str, Circuits]] | None
    least_yield: float
    area_max: float
    tried: list[TriedCircuit] = field(default_factory=list)
    mirrors: tuple[MirrorGroup, ...] = ()
    measured: int = 0
    times: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])

    @property
    def steps(self) -> tuple[HardeningStep, ...]:
        """Return the steps so far."""
        return tuple(one.step for one in self.tried)

    def run(self, transistor_chips: int | None) -> int:
        """Try one circuit after another until enough chips work; return the index of the step to keep.

        A circuit whose own chips have the yield is confirmed on fresh ones before it is kept. If no circuit has the
        yield, the step with the largest is kept. transistor_chips: number of fresh chips of the circuit as given, and
        of the kept one, that run on transistors, 0 for the circuit without mismatch alone, None for no transistors.
        """
        chosen = next((index for index in self._try_all() if self._holds(index)), None)
        if chosen is None:
            chosen = max(range(len(self.tried)), key=lambda k: (self._yield_of(k), -k))
        for index in dict.fromkeys((0, chosen)):
            self._confirm(index)
            if transistor_chips is not None:
                self._ask_transistors(index, transistor_chips)
        kept = self.times.get(str(self.tried[chosen].step.circuit.values.get(OVERRIDES)), {})
        self.mirrors = tuple(replace(one, times=kept.get(one.mirrors, 1)) for one in self.mirrors)
        return chosen

    def _yield_of(self, index: int) -> float:
        """Return the yield of a step: of its fresh chips where they were asked, else of its own; -1 without figures."""
        circuit = self.tried[index].step.circuit
        found = circuit.fresh or circuit.figures.get("yield")
        return -1.0 if found is None else found.value

    def _holds(self, index: int) -> bool:
        """Tell whether a step has the yield, on its own chips and then on fresh ones."""
        if self._yield_of(index) < self.least_yield:
            return False
        self._confirm(index)
        return self._yield_of(index) >= self.least_yield

    def _try_all(self) -> Iterator[int]:
        """Try one circuit after another, each a change of the one with the most yield so far; yield their indices."""
        base = self._try(AS_GIVEN, self.given, self.given.chips.network.name, {})
        yield 0
        if self.train is not None:
            say("training: the network goes on, on chips that vary")
            reason, network, circuits = self.train()
            if reason:
                self._note("trained on chips that vary", network, circuits, reason)
            else:
                trained = self._try("trained on chips that vary", circuits, network, {})
                base = max(base, trained, key=lambda one: one.own_yield)
                yield 1
        for larger in self._enlarge(base):
            base = max(base, larger, key=lambda one: one.own_yield)
            yield len(self.tried) - 1
        if strange := unknown_to_trim(base.circuits.chips.given):
            self._note("trim bits at each bias pin", base.step.network, base.circuits, f"cosim trim has no --{strange}")
            return
        for bits in TRIM_BITS:
            values = {**base.step.circuit.values, BITS: bits}
            trimmed = self._try(f"{bits} trim bits at each bias pin", base.circuits, base.step.network, values)
            if not trimmed.step.circuit.figures:
                return
            yield len(self.tried) - 1

    def _enlarge(self, base: TriedCircuit) -> Iterator[TriedCircuit]:
        """Yield circuits with more devices in parallel, where mismatch costs most accuracy, in ever more area."""
        if self.area_max == 1 or not base.step.circuit.figures:
            return
        circuits, tried = base.circuits, dict[str, int]()
        trial, area = circuits.trial(base.step.circuit), base.step.circuit.figures["area"].value
        if not trial.plan.local:
            self._note("more devices in mirrors", base.step.network, circuits, "the chips have no mismatch")
            return
        say("mirrors: where mismatch costs accuracy")
        self.mirrors = measure_mirrors(trial, circuits.chips.jobs)
        self.measured = base.step.circuit.number
        for factor in (*(one for one in FACTORS if one < self.area_max), self.area_max):
            times = enlarge_mirrors(self.mirrors, (factor - 1) * area)
            if not times or times == tried:
                continue
            tried = times
            name = f"{OVERRIDES}/{factor:g}.toml"
            circuits.keep_overrides(name, with_more_devices(trial.design.settings.overrides, times))
            values: dict[str, Value] = {**base.step.circuit.values, OVERRIDES: name}
            change = f"more devices in mirrors, up to {factor:g} times the area"
            self.times[name] = times
            found = self._try(change, circuits, base.step.network, values)
            if found.step.circuit.figures:
                yield found

    def _try(self, change: str, circuits: Circuits, network: str, values: dict[str, Value]) -> TriedCircuit:
        number = len(self.tried)
        say(f"circuit {number}: {change}")
        return self._keep(HardeningStep(change, network, circuits.run(number, values)), circuits)

    def _note(self, change: str, network: str, circuits: Circuits, reason: str) -> None:
        """Keep a step that was not possible, with its reason, which names files without their folders."""
        for path in (self.given.output, self.given.chips.network.parent):
            reason = reason.replace(f"{path}/", "")
        self._keep(HardeningStep(change, network, SearchTrial(len(self.tried), "", {}, {}, reason)), circuits)

    def _keep(self, step: HardeningStep, circuits: Circuits) -> TriedCircuit:
        self.tried.append(TriedCircuit(step, circuits))
        return self.tried[-1]

    def _confirm(self, index: int) -> None:
        """Count the yield of a step's circuit on fresh chips, if that is not done."""
        step, circuits = self.tried[index].step, self.tried[index].circuits
        if step.circuit.figures and step.circuit.fresh is None:
            say(f"fresh chips: {step.change}")
            self._replace(index, replace(step.circuit, fresh=circuits.again(step.circuit)))

    def _ask_transistors(self, index: int, chips: int) -> None:
        """Simulate a step's circuit on transistors: without mismatch, and its first fresh chips."""
        step, circuits = self.tried[index].step, self.tried[index].circuits
        if not step.circuit.figures:
            return
        say(f"transistors: {step.change}")
        seen = circuits.check(step.circuit)
        if chips:
            seen = replace(seen, chips=chips, yield_=circuits.count(step.circuit, chips))
        self._replace(index, replace(step.circuit, transistors=seen))

    def _replace(self, index: int, circuit: SearchTrial) -> None:
        """Put a step's circuit in the place of the one without these figures."""
        one = self.tried[index]
        self.tried[index] = replace(one, step=replace(one.step, circuit=circuit))


def say_yield(found: Estimate | None) -> str:
    """Format a yield with its interval; '-' for None."""
    return shown_figure("yield", found)


def verdict(found: Hardening) -> str:
    """Return the result of a hardening as a sentence without full stop."""
    after, before = found.after.fresh, found.before.fresh
    if not found.after.figures:
        return "no circuit of this network could be tried"
    if after is None or after.low is None or after.high is None:
        return "the fresh chips could not be counted"
    told = f"{percent(after.value)} of fresh chips work {within((after.low, after.high))}"
    if found.chosen == 0:
        alone = len(found.steps) == 1
        return f"{told}, as given" if found.met or alone else f"{told}, as given, and no other circuit has more"
    return f"{told}, {percent(before.value)} before" if before is not None else told


def remarks(found: Hardening) -> list[str]:
    """Return sentences on what a hardening's figures mean, and on what it could not do."""
    lines = [
        f"A chip works if it has {', '.join(found.spec)}; {percent(found.least_yield)} of the chips must. The limit is "
        "the same for every circuit.",
        "A step was chosen by its own chips, which makes the best look better than it is; its fresh chips are as many "
        "others, which were drawn after it.",
    ]
    if "samples" in found.options:
        lines.append("Fresh chips run other test samples, too, because --samples draws them with the chips.")
    refused = [step.change for step in found.steps if _is_refused(step.circuit, found.least_yield)]
    if refused:
        lines.append(f"Their own chips had the yield, and fresh ones did not: {', '.join(refused)}.")
    if not found.met:
        lines.append(f"The yield of {percent(found.least_yield)} is not reached.")
    if found.after.refuted and found.after.transistors is not None:
        lines.append(f"Transistors refute the circuit: {found.after.transistors.missed}.")
    lines += [
        f"Not possible: {step.change}, because {step.circuit.reason}."
        for step in found.steps
        if not step.circuit.figures
    ]
    if BITS in found.after.values:
        lines.append("Converters for the trim bits are in neither power nor area.")
    return lines


def _is_refused(circuit: SearchTrial, least: float) -> bool:
    """Tell whether a circuit has the yield on the chips that chose it, but not on fresh ones."""
    fresh = circuit.fresh
    return (
        bool(circuit.figures) and circuit.figures["yield"].value >= least and fresh is not None and fresh.value < least
    )
