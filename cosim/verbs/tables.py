"""Summary of a ladder as text: what fits a terminal."""

from cosim.base.quantities import format_quantity
from cosim.verbs.characterize.ladder import LadderSummary


def format_ladder(summary: LadderSummary) -> list[str]:
    """Return the figures of `summarize_ladder` as lines under 80 columns."""
    split = [f"{block} {format_quantity(watt, 'W')}" for block, watt in summary.power_split_w.items()]
    first = summary.first_wrong
    lines = [
        f"steps checked     {summary.steps_checked}, of random sequences",
        f"wrong levels      {summary.wrong_levels}; updates that went wrong {summary.wrong_updates}",
        f"retention         {summary.retention_steps} steps held, {summary.retention_wrong} wrong",
        f"staircase         wrong steps: {summary.staircase_wrong}, as drawn {summary.staircase_wrong_uncalibrated}",
        f"update            done {format_quantity(summary.update_time_max_s, 's')} after the pulse began, or sooner",
        f"level error       at most {100 * summary.level_error_max:.2f} % of alpha per rung",
        f"power             {format_quantity(summary.power_w, 'W')} on average",
        f"                  {', '.join(split[:3])},",
        f"                  {', '.join(split[3:])}",
    ]
    if first is not None:
        lines.insert(
            2,
            f"                  first in sequence {first.sequence}, step {first.step}: level {first.found}, "
            f"not {first.expected}",
        )
    return [f"  {line}" for line in lines]
