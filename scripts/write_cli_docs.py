"""Write the help of every verb into docs/cli.md: its blocks that begin with Usage, and the options that verbs share.

The prose between the blocks stays as it is. Usage: write_cli_docs.py docs/cli.md
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent

import click

from cosim.cli import VERBS, _cosim
from cosim.cli.help import Groups, format_group, format_manual, shared_groups

WIDTH = 78  # characters, as click takes them of 80
SHARED = "## Options that verbs share"
_BLOCK = re.compile(r"^    Usage: cosim(?P<verb>(?: [a-z]+)*) .*?(?=^\S|^    Usage: |\Z)", re.MULTILINE | re.DOTALL)
_AFTER_SHARED = re.compile(rf"(?<=^{SHARED}\n).*?(?=^\S)(?P<prose>.*?)^    .*?(?=^\S|\Z)", re.MULTILINE | re.DOTALL)


def format_manual_page(text: str) -> str:
    """docs/cli.md with the help of this version in its blocks. Raises SystemExit where a verb has none."""
    lacking = sorted({*VERBS} - {found["verb"].split()[0] for found in _BLOCK.finditer(text) if found["verb"]})
    if lacking:
        raise SystemExit(f"docs/cli.md: needs a heading and an indented line 'Usage: cosim VERB ' for {lacking}")
    text = _BLOCK.sub(lambda found: _block(help_of(found["verb"].split())), text)
    return _AFTER_SHARED.sub(lambda found: f"\n{found['prose']}{_block(shared_options())}", text).rstrip() + "\n"


def help_of(words: list[str]) -> str:
    """What the manual has of a verb, given as its words; none for cosim itself."""
    with context_of(words) as ctx:
        return format_manual(ctx)


def shared_options() -> str:
    """Every group of options that several verbs have, in full."""
    groups = Groups()
    for words in commands():
        with context_of(words) as ctx:
            for group, options in shared_groups(ctx).items():
                known = groups.setdefault(group, [])
                known += [option for option in options if option.opts not in [one.opts for one in known]]
    with context_of([]) as ctx:
        return "\n\n".join(format_group(ctx, group, options) for group, options in groups.items())


def commands() -> Iterator[list[str]]:
    """The words of every verb and of every subcommand."""
    for verb in VERBS:
        with context_of([verb]) as ctx:
            yield [verb]
            if isinstance(ctx.command, click.Group):
                yield from ([verb, name] for name in ctx.command.list_commands(ctx))


def context_of(words: list[str]) -> click.Context:
    """A context of a command for its help."""
    command: click.Command = _cosim
    ctx = click.Context(command, info_name="cosim", terminal_width=WIDTH, **_cosim.context_settings)
    for word in words:
        assert isinstance(command, click.Group)
        found = command.get_command(ctx, word)
        assert found is not None, f"no command {word}"
        command, ctx = found, click.Context(found, info_name=word, parent=ctx)
    return ctx


def _block(text: str) -> str:
    return indent(text.rstrip(), "    ") + "\n\n"


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(format_manual_page(page.read_text(encoding="utf-8")), encoding="utf-8")
