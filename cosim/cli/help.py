"""Help that fits a screen: options of a group are one entry in --help, and are shown in full in --help-all."""

from collections.abc import Callable, Mapping, Sequence
from textwrap import fill
from typing import Any, Literal, NamedTuple

import click

Full = Literal["none", "own", "all"]  # groups that are shown in full: none, those of one verb, those of several as well
_FULL = "cosim.help"  # in a context's meta
SCREEN = 40  # lines
EVERYDAY = ("--data", "--samples", "--technology", "--corner", "--jobs")  # in full wherever others are not
RARE = ("--json", "--config", "--audit", "--timeout", "--to")  # named alone where some are
CONTEXT: Mapping[str, Any] = {"help_option_names": ["-h", "--help"], "show_default": True}  # of every command


class OptionGroup(NamedTuple):
    """A group of options that help shows together, under its title. shared: several verbs have it."""

    title: str
    shared: bool = False


class GroupedOption(click.Option):
    """An option of the command line that may belong to a group; without one it is shown first."""

    def __init__(self, names: Sequence[str], group: OptionGroup | None = None, **more: Any) -> None:  # noqa: ANN401
        super().__init__(names, **more)
        self.group = group


Groups = dict[OptionGroup, list[click.Option]]


def _show_all(ctx: click.Context, _option: click.Parameter, asked: object) -> None:
    if asked and not ctx.resilient_parsing:
        click.echo(format_help(ctx, "all"))
        ctx.exit()


HELP_ALL = click.Option(
    ["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=_show_all, help="Show every option, too."
)


class Verb(click.Command):
    """A command that has --help-all where its options have groups.

    record: dataclass of its options; run: called with them, see `cosim.cli.verb`; words: what calls it, behind `cosim`.
    """

    record: type[Any]
    run: Callable[..., Any]
    words: str

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        params = super().get_params(ctx)
        return [*params[:-1], HELP_ALL, params[-1]] if _sorted(params)[1] else params

    def get_help(self, ctx: click.Context) -> str:
        """Return the help text with as many options in full as fit a screen."""
        if _FULL in ctx.meta:
            return super().get_help(ctx)
        texts = [format_help(ctx, full) for full in ("all", "own", "none")]
        return next((text for text in texts if _fits(text)), texts[-1])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of no group and those that everyone needs, and the groups in full, or by their names
        alone."""
        full: Full = ctx.meta.get(_FULL, "all")
        alone, groups = _sorted(self.get_params(ctx))
        folded = [group for group in groups if full == "none" or (full == "own" and group.shared)]
        named = {group.title: groups[group] for group in folded}
        if folded:
            named = {"The run": [one for one in alone if long_name(one) in RARE], **named}
            first = [one for options in named.values() for one in options if long_name(one) in EVERYDAY]
            alone = [*alone[:1], *first, *(one for one in alone[1:] if long_name(one) not in RARE)]
        with formatter.section("Options"):
            formatter.write_dl(_records(ctx, alone))
        for group, options in groups.items():
            if group not in folded:
                with formatter.section(group.title):
                    formatter.write_dl(_records(ctx, options))
        if folded:
            with formatter.section("More options, in full with --help-all"):
                for title, options in named.items():
                    names = ", ".join(name for name in map(long_name, options) if name not in EVERYDAY)
                    if names:
                        formatter.write(_fill(f"{title}: {names}", formatter.width))


def long_name(option: click.Parameter) -> str:
    """Return an option's longest name, the one with two dashes."""
    return max(option.opts, key=len)


def format_help(ctx: click.Context, full: Full) -> str:
    """Return the help of a context's command with these groups in full."""
    ctx.meta[_FULL] = full
    try:
        return ctx.command.get_help(ctx)
    finally:
        del ctx.meta[_FULL]


def format_manual(ctx: click.Context) -> str:
    """Return a verb's help for the manual: all options of a short verb, else without the groups that verbs share.

    Shared groups have a section of their own in the manual.
    """
    text = format_help(ctx, "all")
    return text if _fits(text) else format_help(ctx, "own")


def shared_groups(ctx: click.Context) -> Groups:
    """Return the groups of a context's command that other verbs have, too."""
    return {group: found for group, found in _sorted(ctx.command.get_params(ctx))[1].items() if group.shared}


def format_group(ctx: click.Context, group: OptionGroup, options: Sequence[click.Option]) -> str:
    """Format the options of a group in full, under its title."""
    formatter = ctx.make_formatter()
    with formatter.section(group.title):
        formatter.write_dl(_records(ctx, options))
    return formatter.getvalue().strip("\n")


def _fits(text: str) -> bool:
    return text.count("\n") < SCREEN


def _sorted(params: Sequence[click.Parameter]) -> tuple[list[click.Option], Groups]:
    """Sort options into those of no group, and those of each."""
    alone = list[click.Option]()
    groups = Groups()
    for param in params:
        if isinstance(param, GroupedOption) and param.group is not None:
            groups.setdefault(param.group, []).append(param)
        elif isinstance(param, click.Option):
            alone.append(param)
    return alone, groups


def _fill(text: str, width: int) -> str:
    """Wrap text into lines that break between words; an option's name is one word."""
    return f"{fill(text, width, initial_indent='  ', subsequent_indent='    ', break_on_hyphens=False)}\n"


def _records(ctx: click.Context, options: Sequence[click.Option]) -> list[tuple[str, str]]:
    return [record for option in options if (record := option.get_help_record(ctx)) is not None]
