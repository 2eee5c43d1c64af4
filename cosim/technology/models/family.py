"""A family of transistor models, such as BSIM4, as data.

A family says which model cards of a foundry's library belong to it, how a simulator's language writes such a card, and
by which parameters of an instance a single transistor deviates from its card.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


def _unchanged(version: str) -> str:
    return version


@dataclass(frozen=True, eq=False)
class CardForm:
    """The form of a family's cards in one simulator's language.

    card: template of a card, with `{name}`, `{polarity}` n or p, `{sign}` 1 or -1, and `{fields}`, the parameters;
    opening: statements before the first card; version: function that returns, for the version on a library's card, the
    nearest one that this simulator has; written: template of the version's field; defaults: (name, value) added to a
    card that lacks the name; replaced: (name, value) written in place of another value, if the card has the name;
    unknown: parameters that this simulator refuses, so that they are left out; drain: name of the drain current among a
    transistor's results; include: statement that a comment suggests for the foundry's own library, `{}` its section, ""
    for no such comment.
    """

    card: str
    opening: tuple[str, ...] = ()
    version: Callable[[str], str] = _unchanged
    written: str = "version={}"
    defaults: tuple[tuple[str, float], ...] = ()
    replaced: tuple[tuple[str, float], ...] = ()
    unknown: re.Pattern[str] = re.compile("(?!)")  # none
    drain: str = "id"
    include: str = ""


@dataclass(frozen=True, eq=False)
class ModelFamily:
    """A family of transistor models.

    name: as users know it; kinds: type words of its cards -> the polarity, n or p, or "" where the parameter `type`, 1
    or -1, says it; levels: values that `level` on its cards may have; simulator: name of the engine that measures its
    devices; forms: dialect -> how its cards are written there; instance: parameters that a library's subcircuit may
    give to its transistor -> the value that each must have, None where it is checked against the drawn size, taken into
    the card, or without effect; any other must be absent or 0; left_out: parameters that are not copied from the
    library's card, which a form may write itself; fixed: parameters that cosim's cards set, whatever the library says;
    threshold, mobility: parameters of a card that take up a subcircuit's own threshold shift and mobility factor, ""
    where a subcircuit must not have any; shift, factor: parameters of an instance for a threshold shift, V, and for a
    factor of the mobility, in decks and in libraries; signed: True where a positive shift is added to the threshold
    with its sign, which makes a p device stronger, False where it raises the magnitude in both; oxide: parameter for
    the thickness of the gate oxide, and its default, m; osdi: whether simulators load the model as compiled Verilog-A.
    """

    name: str
    kinds: Mapping[str, str]
    levels: tuple[float, ...]
    simulator: str
    forms: Mapping[str, CardForm]
    instance: Mapping[str, float | None]
    left_out: frozenset[str]
    oxide: tuple[str, float]
    shift: str = "delvto"
    factor: str = "mulu0"
    signed: bool = True
    threshold: str = ""
    mobility: str = ""
    fixed: Mapping[str, float] = field(default_factory=dict[str, float])
    osdi: bool = False

    def polarity(self, kind: str, parameters: Mapping[str, float]) -> str:
        """Return the polarity of a card, n or p, from its type word and its parameters; "" where they say neither."""
        return self.kinds[kind] or {1.0: "n", -1.0: "p"}.get(parameters.get("type", 0.0), "")
