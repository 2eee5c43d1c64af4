"""Instructions to repeat a run, for its page: the command, and the TOML that says all of it."""

import shlex

from cosim.base.settings import SETTINGS_FILE, RunSettings, describe_version, format_settings
from cosim.results.html import escape, format_fold

REPEAT = "Repeat this run"


def format_repeat(settings: RunSettings | None) -> str:
    """Return HTML of a folded section that says how to repeat the run; empty where no settings are kept."""
    if settings is None:
        return ""
    other = f"<p>This run was {escape(text)}.</p>" if (text := describe_version(settings)) else ""
    again = shlex.join(["cosim", *settings.verb.split(), "--config", SETTINGS_FILE, "-o"]) + " FOLDER"
    return format_fold(
        f"{REPEAT} of cosim {settings.verb}, version {settings.version or 'not known'}",
        f"{other}<pre>{escape(settings.command)}</pre>"
        f"<p>Or, with every option as it was in effect, by {SETTINGS_FILE} of its folder:</p>"
        f"<pre>{escape(again)}</pre><pre>{escape(format_settings(settings))}</pre>",
    )
