"""Table of model families. A further one is a file beside this one, and an entry here."""

from cosim.technology.models.bsim4 import BSIM4
from cosim.technology.models.family import ModelFamily
from cosim.technology.models.psp103 import PSP103

FAMILIES: tuple[ModelFamily, ...] = (BSIM4, PSP103)


def family_of(kind: str) -> ModelFamily | None:
    """Return the family of a model card by its type word, such as nmos; None where cosim knows no such family."""
    return next((family for family in FAMILIES if kind in family.kinds), None)
