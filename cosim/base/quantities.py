"""Conversion of quantities: SI floats inside the package, engineering notation for people.

`parse_quantity("10n", "A")` is for what people type, `format_quantity(1e-8, "A")` for what people read. Decks use
neither: they have exponent notation, because SPICE reads `1M` as one milli.
"""

import math
import re

from cosim.base.errors import InputError

_PREFIXES = {
    "a": 1e-18,
    "f": 1e-15,
    "p": 1e-12,
    "n": 1e-9,
    "u": 1e-6,
    "µ": 1e-6,
    "m": 1e-3,
    "": 1.0,
    "k": 1e3,
    "M": 1e6,
    "G": 1e9,
}
_QUANTITY = re.compile(r"^\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([afpnuµmkMG]?)\s*([A-Za-z°]*)\s*$")
_EXAMPLE = "'10n' or '1e-8'"
_EXAMPLES = {"V": "'1.71' or '900m'", "s": "'10m' or '0.01'", "C": "'60' or '-40'", "": "'0.95'"}

Q_ELECTRON = 1.602176634e-19  # C, exact (SI 2019)
K_BOLTZMANN = 1.380649e-23  # J/K, exact (SI 2019)
ZERO_CELSIUS = 273.15  # K


def u_t(celsius: float) -> float:
    """Return the thermal voltage kT/q, V, at a temperature in degree Celsius."""
    return K_BOLTZMANN * (celsius + ZERO_CELSIUS) / Q_ELECTRON


def parse_quantity(text: str, unit: str, field: str = "value") -> float:
    """Parse text such as `10n`, `10 nA` or `1e-8` to its SI value.

    Raises InputError that names `field` if the text is no number or has another unit.
    """
    match = _QUANTITY.match(text)
    if match is None or match.group(3) not in ("", unit):
        kind = f"a number in {unit}" if unit else "a number"
        raise InputError(f"{field} must be {kind} such as {_EXAMPLES.get(unit, _EXAMPLE)}, not {text!r}")
    value = float(match.group(1)) * _PREFIXES[match.group(2)]
    if not math.isfinite(value):
        raise InputError(f"{field} must be finite, not {text!r}")
    return value


def format_quantity(value: float, unit: str, digits: int = 3) -> str:
    """Format a number with its unit in engineering notation: 1.23e-8, 'A' -> '12.3 nA'."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g} {unit}"
    value = float(f"{value:.{digits - 1}e}")  # rounded first, so that 999.9 nA becomes 1 uA
    exponent = min(max(3 * math.floor(math.log10(abs(value)) / 3 + 1e-12), -18), 9)
    prefix = {-18: "a", -15: "f", -12: "p", -9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G"}[exponent]
    return f"{value / 10.0**exponent:.{digits}g} {prefix}{unit}"
