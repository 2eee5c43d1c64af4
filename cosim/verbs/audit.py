"""--audit: some samples of an engine with models of its own go through ngspice, too."""

from pathlib import Path
from typing import TYPE_CHECKING

from cosim.base.bounds import AUDIT
from cosim.base.errors import InputError, MissingToolError
from cosim.cli.progress import say
from cosim.cli.types import Integer
from cosim.cli.verb import Declared, option
from cosim.engines.table import NGSPICE, engine_entry

if TYPE_CHECKING:
    from cosim.engines.simulation.audit import Audit

AUDITED = 20  # instances, where the engine has models of its own


def audit_option() -> Declared:
    """Declare --audit of a verb: how many samples of an engine with models of its own ngspice runs as well."""
    text = "How many samples of --engine batch run in ngspice, too, half of them the least certain; 0 for none "
    return option(f"{text}[default: {AUDITED}].", Integer(AUDIT))


def audit_count(audit: int | None, engine: str) -> int:
    """Return how many samples to audit, before anything runs. Raises InputError for an engine that is not audited,
    MissingToolError where ngspice is missing and the audit was asked for; else it is left out with a message."""
    from cosim.engines.table import simulator_named

    if not engine_entry(engine).quick:
        if audit:
            raise InputError(f"--audit is for --engine batch, not for {engine}; leave it out")
        return 0
    count = AUDITED if audit is None else audit
    try:
        if count:
            simulator_named(NGSPICE).check()
    except MissingToolError as error:
        if audit is not None:
            raise
        say(f"no audit: {error}")
        return 0
    return count


def describe_audit(audit: "Audit | None", place: Path) -> str | None:
    """Return the complaint of a verb whose audit by ngspice refuses the run; None where it does not."""
    from cosim.verbs.trust import format_refusal

    return None if audit is None or audit.passed else f"cosim: {format_refusal(audit, str(place))}"
