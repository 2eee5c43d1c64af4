"""Files of a sign-off's folder: signoff.json, plan.toml, and one page with those of its larger checks."""

from pathlib import Path

from cosim.base.store import write_results, write_texts
from cosim.engines.simulation.simulated import engine_named
from cosim.results.kept_page import REPORT_FILE, has_page, read_page, write_page
from cosim.results.page import Page
from cosim.verbs.montecarlo.keep import Places
from cosim.verbs.montecarlo.run import SUMMARY_FILE
from cosim.verbs.montecarlo.write import read_run
from cosim.verbs.signoff.conditions import CHIPS, NOMINAL, corners_folder
from cosim.verbs.signoff.page import signoff_page
from cosim.verbs.signoff.plan import format_plan
from cosim.verbs.signoff.study import SignOff
from cosim.verbs.signoff.subject import SignoffSubject

RESULT, PLAN = "signoff.json", "plan.toml"


def write_signoff(subject: SignoffSubject, found: SignOff) -> Path:
    """Write all of it; returns the page's file. Raises InputError where that cannot be."""
    place, plan = subject.run.place, format_plan(subject.plan)
    engine = engine_named(subject.run.engine)
    version = engine.describe(subject.run.standing(subject.design).technology).version
    page = signoff_page(subject.design, found, plan, {subject.run.engine: version})
    write_results(place, {RESULT: found})
    write_texts(place, {PLAN: plan})
    write_page(place, page, tuple(_others(subject, found)))
    return place / REPORT_FILE


def _others(subject: SignoffSubject, found: SignOff) -> list[Page]:
    """Return the pages of the checks that have one."""
    made = {one.name for one in found.made}
    place = subject.run.place
    corners = [corners_folder(one) for one in subject.biases] if "corners" in made else []
    folders = [*([NOMINAL] if "nominal" in made else []), *corners]
    pages = [read_page(place / one) for one in folders if has_page(place / one)]
    if "mismatch" in made and (place / CHIPS / SUMMARY_FILE).is_file():
        root = subject.compiled["pdk_root"]
        pages.append(read_run(place / CHIPS, Places(root), waveforms=False))
    return pages
