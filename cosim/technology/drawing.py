"""Data of a process for a layout generator: layers, rules and the names that the foundry's decks use.

Lengths are whole nanometres here and micrometres in the file, where each rule stands beside the foundry's name of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

Layer = tuple[int, int]  # GDS layer and datatype
LAYERS = (
    "comp", "nwell", "poly", "nplus", "pplus", "contact", "metal1", "via1", "metal2", "via2", "metal3", "via3",
    "metal4", "via4", "metal5", "plate", "plate_mark", "plate_length",
    "metal2_label", "metal4_label", "boundary",
    "metal1_fill", "metal2_fill", "metal3_fill", "metal4_fill", "metal5_fill",
)  # fmt: skip
RULES = (
    "contact", "contact_space", "contact_in", "contact_gate", "active_space", "active_implant", "well_active",
    "well_space", "poly_space", "poly_end", "poly_active", "metal1_space", "metal_width", "metal_space", "metal_area",
    "via", "via_end", "plate_in", "plate_via", "plate_via_space", "plate_space", "plate_metal", "plate_reach",
    "plate_smallest", "plate_largest", "top_width", "top_space", "top_area", "strap", "metal_share",
)  # fmt: skip
CONDUCTORS = ("poly", "metal1", "metal2", "metal3", "metal4", "metal5")  # from below
VIAS = ("contact", "via1", "via2", "via3", "via4")
AREAS = ("metal_area", "top_area", "plate_smallest", "plate_largest")  # square micrometre
SHARES = ("metal_share",)  # percent; the other rules are lengths


@dataclass(frozen=True)
class Rule:
    """A smallest width, space, enclosure or share: the foundry's name of it, and nanometres, square nanometres or
    percent."""

    name: str
    value: int


@dataclass(frozen=True)
class WireTable:
    """Capacitance of wires. over: layer -> layer below it, or ground -> F/m2; rim: the same -> F/m of its edge;
    beside: layer -> (F for a length that equals the spacing, m that are added to the spacing);
    junctions: polarity -> (F/m2, F/m); well: of an n well to the substrate, F/m2."""

    over: Mapping[str, Mapping[str, float]]
    rim: Mapping[str, Mapping[str, float]]
    beside: Mapping[str, tuple[float, float]]
    junctions: Mapping[str, tuple[float, float]]
    well: float


@dataclass(frozen=True)
class ResistanceTable:
    """sheet: conductor -> ohm a square; via: one of VIAS -> ohm of one."""

    sheet: Mapping[str, float]
    via: Mapping[str, float]


@dataclass(frozen=True)
class DrawingRules:
    """The `[layout]` of a technology.

    mos: polarity -> the transistor's name in the LVS deck; capacitor: that of its metal capacitor; variant: of the
    metal stack, as the decks name it; decks: their folder, below that of the kits; layers, rules: all of LAYERS, RULES;
    wires, resistance: what extraction takes; gradient: S of thresholds in V/m and of current factors in 1/m.
    """

    mos: Mapping[str, str]
    capacitor: str
    variant: str
    decks: str
    layers: Mapping[str, Layer]
    rules: Mapping[str, Rule]
    wires: WireTable
    resistance: ResistanceTable
    gradient: tuple[float, float]

    def __getitem__(self, rule: str) -> int:
        """Return the value of a rule, nanometre, square nanometre or percent."""
        return self.rules[rule].value
