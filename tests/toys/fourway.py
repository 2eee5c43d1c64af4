"""A simulator with lanes, in a module of few imports: every worker process that runs it loads them."""

from dataclasses import dataclass, field

from cosim.circuit.bench import Voltage
from cosim.engines.engine import Description, Failure, FailureKind, Waveforms
from cosim.engines.ngspice.simulator import Ngspice


@dataclass(frozen=True)
class Fourway:
    """ngspice on four benches. strange: places in a tile that it has no model for; false: whose states are inverted."""

    name: str = "fourway"
    grace: float = 1.0
    lanes: int = 4
    strange: tuple[int, ...] = ()
    false: tuple[int, ...] = ()
    ngspice: Ngspice = field(default_factory=Ngspice)

    def write(self, bench):
        return f"* four at once\n{self.ngspice.write(bench)}"

    def run(self, bench, timeout):
        return self.run_all([bench], timeout)[0]

    def run_all(self, benches, timeout):
        assert 1 <= len(benches) <= self.lanes
        return [self._run(k, bench) for k, bench in enumerate(benches)]

    def _run(self, k, bench):
        if k in self.strange:
            return Failure(FailureKind.UNSUPPORTED, "a floating thing", self.write(bench))
        waves = self.ngspice.run(bench, 60.0)
        if k not in self.false or isinstance(waves, Failure):
            return waves
        inverted = {probe: 1.8 - wave if isinstance(probe, Voltage) else wave for probe, wave in waves.probes.items()}
        return Waveforms(waves.time, inverted)

    def check(self):
        self.ngspice.check()

    def describe(self, technology):
        return Description("4.0", {})
