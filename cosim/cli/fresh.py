"""--fresh: a verb begins anew; without it the same command goes on with what an earlier run has kept."""

import click

_FRESH = "cosim.fresh"  # in a context's meta


def _take(ctx: click.Context, _option: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click calls it
    ctx.meta[_FRESH] = value


FRESH = click.Option(
    ["--fresh/--resume"],
    default=False,
    expose_value=False,
    callback=_take,
    help="Begin anew.",
)


def is_fresh() -> bool:
    """Return whether the verb that runs was asked to begin anew."""
    ctx = click.get_current_context(silent=True)
    return ctx is not None and ctx.meta.get(_FRESH, False)
