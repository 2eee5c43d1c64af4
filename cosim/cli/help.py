"""Help texts that fit a screen: --help shows only the names of options in a group, --help-all every option in full."""

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
    """A group of options that the help text shows under one title; shared: whether several verbs have the group."""

    title: str
    shared: bool = False


class GroupedOption(click.Option):
    """A command-line option that may belong to a group of the help text; options without a group are shown first."""

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
    """A command of cosim; it has --help-all if any of its options belongs to a group.

    record: dataclass of the command's options; run: function that gets these options, see `cosim.cli.verb`; words: the
    words after `cosim` that call the command.
    """

    record: type[Any]
    run: Callable[..., Any]
    words: str

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        params = super().get_params(ctx)
        return [*params[:-1], HELP_ALL, params[-1]] if _sorted(params)[1] else params

    def get_help(self, ctx: click.Context) -> str:
        """Return the most complete help text that fits a screen: with no groups, shared groups, or all as names."""
        if _FULL in ctx.meta:
            return super().get_help(ctx)
        texts = [format_help(ctx, full) for full in ("all", "own", "none")]
        return next((text for text in texts if _fits(text)), texts[-1])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write options without a group in full, then each group in full or as the names of its options.

        If a group is written as names, EVERYDAY options are in full all the same, and RARE ones are names.
        """
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
    """Return an option's longest name, which begins with two dashes."""
    return max(option.opts, key=len)


def format_help(ctx: click.Context, full: Full) -> str:
    """Return the help text of a context's command; full: groups shown in full: "none", "own" (not shared) or "all"."""
    ctx.meta[_FULL] = full
    try:
        return ctx.command.get_help(ctx)
    finally:
        del ctx.meta[_FULL]


def format_manual(ctx: click.Context) -> str:
    """Return a verb's help text for the manual.

    If the text with all options exceeds a screen, groups shared by several verbs are shown by the names of their
    options; the manual has a section for each of them.
    """
    text = format_help(ctx, "all")
    return text if _fits(text) else format_help(ctx, "own")


def shared_groups(ctx: click.Context) -> Groups:
    """Return group -> options, for the groups of a context's command that several verbs have."""
    return {group: found for group, found in _sorted(ctx.command.get_params(ctx))[1].items() if group.shared}


def format_group(ctx: click.Context, group: OptionGroup, options: Sequence[click.Option]) -> str:
    """Return the help text of a group: its title, and its options in full."""
    formatter = ctx.make_formatter()
    with formatter.section(group.title):
        formatter.write_dl(_records(ctx, options))
    return formatter.getvalue().strip("\n")


def _fits(text: str) -> bool:
    return text.count("\n") < SCREEN


def _sorted(params: Sequence[click.Parameter]) -> tuple[list[click.Option], Groups]:
    """Return the options without a group, and group -> options for all others."""
    alone = list[click.Option]()
    groups = Groups()
    for param in params:
        if isinstance(param, GroupedOption) and param.group is not None:
            groups.setdefault(param.group, []).append(param)
        elif isinstance(param, click.Option):
            alone.append(param)
    return alone, groups


def _fill(text: str, width: int) -> str:
    """Wrap indented text into lines of at most `width`, never inside an option's name."""
    return f"{fill(text, width, initial_indent='  ', subsequent_indent='    ', break_on_hyphens=False)}\n"


def _records(ctx: click.Context, options: Sequence[click.Option]) -> list[tuple[str, str]]:
    return [record for option in options if (record := option.get_help_record(ctx)) is not None]
