"""Ranges that a user's numbers must lie in, each declared once for command line, settings file and Python.

An end of a million or more is far beyond any use: it guards against slips, such as a wrong exponent, before work
begins. Where sizes multiply, `check_memory` compares the memory that they need with the memory that the machine has.
"""

import os
import resource
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cosim.base.errors import InputError, OutOfMemoryError

GUARD = 1e6


@dataclass(frozen=True)
class Bounds:
    """A range of numbers from `low` to `high` in `unit`.

    open_low, open_high: whether the end itself is outside the range; zero: meaning of 0, which is then allowed although
    it is outside the range, "" if 0 has no special meaning.
    """

    low: float
    high: float
    unit: str = ""
    open_low: bool = False
    open_high: bool = False
    zero: str = ""

    def __contains__(self, value: float) -> bool:
        """Tell whether a number is in the range; nan never is."""
        if value == 0 and self.zero:
            return True
        above = value > self.low if self.open_low else value >= self.low
        return above and (value < self.high if self.open_high else value <= self.high)

    def __str__(self) -> str:
        """Return the range in words: `1 to 64`, `(0, 1]`, `1e-06 to 1 s`."""
        low, high = _shown(self.low), _shown(self.high)
        if self.open_low or self.open_high:
            text = f"{'(' if self.open_low else '['}{low}, {high}{')' if self.open_high else ']'}"
        else:
            text = f"{low} to {high}"
        return f"{text}{f' {self.unit}' if self.unit else ''}{f', or 0 for {self.zero}' if self.zero else ''}"

    def check(self, name: str, value: float, repair: str = "") -> None:
        """Raise InputError that names the number, its range and its value if `value` is outside the range."""
        if value not in self:
            limit = self.low if value < self.low or (self.open_low and value == self.low) else self.high
            text = f"{name} {self.refuse(value)}{f'; {repair}' if repair else ''}"
            raise InputError(text, where=name, value=value, limit=limit, unit=self.unit)

    def refuse(self, value: float) -> str:
        """Return the words of an error about a number outside the range: `must lie in 1 to 64, not 0`."""
        return f"must lie in {self}, not {_shown(value)}{f' {self.unit}' if self.unit else ''}"


WITHIN = "within"  # in a field's metadata: the bounds of its number, or of each of its numbers


def bounded(default: Any, bounds: Bounds) -> Any:  # noqa: ANN401 - it is declared where a field has its default
    """Declare a dataclass field whose number, or each of whose numbers, must lie in `bounds`."""
    return field(default=default, metadata={WITHIN: bounds})


SEED = Bounds(0, 2**32 - 1)  # what every generator takes; chips that judge a training are drawn from seeds above it
SEEDS = Bounds(1, 1000)
JOBS = Bounds(1, 1024)
CHIPS = Bounds(1, 1_000_000)
SAMPLES = Bounds(1, 1_000_000)
AUDIT = Bounds(0, 1_000_000)  # samples
NOISE_RUNS = Bounds(0, 1_000_000)
NUMBER = Bounds(0, 100_000_000)  # of a sample, a frame, a chip: whether there is one of this number is asked later
TIMEOUT = Bounds(0, 1e6, "s", open_low=True)
SEQUENCES = Bounds(1, 1000)
STEPS = Bounds(1, 10_000)  # updates of a ladder
CONVERTER_BITS = Bounds(2, 6)  # docs/how-to/backbone.md has what more bits cost
EPSILON = Bounds(-1, 1)
AREA = Bounds(0.01, 100)  # over the drawn one
TOLERANCE = Bounds(0, 1e9, open_low=True)  # in the unit of the targets

T_STEP = Bounds(1e-6, 1.0, "s")  # frames take milliseconds, and 10 is more likely 10m
TAU = Bounds(1e-9, 10.0, "s")
SUPPLY = Bounds(0, 100, "V", open_low=True)  # each technology has its own largest one
SUPPLY_SHARE = Bounds(0, 2, open_low=True, open_high=True)  # of the nominal supply
CELSIUS = Bounds(-55, 150, "C")  # what BSIM cards are extracted for
I_UNIT = Bounds(1e-15, 1e-3, "A")  # what a technology's devices carry is checked by the compiler
UNITS = Bounds(1, 64)  # unit devices per weight 1.0
HEADROOM = Bounds(0, 64)  # rungs
COMPARATOR_DEVICES = Bounds(1, 16)  # in parallel


def _shown(value: float) -> str:
    """Format a number as short as possible; one that is too large for a float, by its size."""
    try:
        return str(value) if isinstance(value, int) and abs(value) < 1e12 else f"{value:g}"
    except OverflowError:
        return "1e+308 or more"


def check_memory(needed: float, work: str, repair: str) -> None:
    """Raise OutOfMemoryError if work needs at least `needed` bytes of memory and this process cannot have them.

    work: what needs the memory, repair: what to do instead, both for the message.
    """
    there = available_memory()
    if needed > there:
        raise OutOfMemoryError(
            f"{work} needs at least {needed / 1e9:.2g} GB of memory, and {there / 1e9:.2g} GB are free; {repair}"
        )


def available_memory() -> float:
    """Return how many more bytes of memory this process can have, by the machine and by its own limit (ulimit -v)."""
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    limits = [float("inf") if soft == resource.RLIM_INFINITY else float(soft)]
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        limits += [1024 * float(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    except OSError:  # not Linux
        limits.append(float(os.sysconf("SC_PAGE_SIZE")) * float(os.sysconf("SC_PHYS_PAGES")))
    return min(limits)
