"""The command line: each verb is one thin function, imported only when it is called, so that `cosim --help` is fast."""

import re
import sys
from difflib import get_close_matches
from importlib import import_module
from io import TextIOWrapper

import click

from cosim.base.errors import CosimError, printable
from cosim.base.version import __version__
from cosim.cli.help import CONTEXT, Verb
from cosim.cli.option_names import spell_options
from cosim.cli.session import StoppedError, stopping_on_signals

GROUPS = {  # heading of the help text -> verb -> what it does
    "From a network to a mask": {
        "demo": "Train, compile, simulate and compare a small network.",
        "train": "Train a network that the circuit can hold.",
        "inspect": "Print what is in a checkpoint.",
        "compile": "Write the transistor netlist of a trained network.",
        "simulate": "Run test samples in a circuit simulator.",
        "compare": "Compare software, behavioral model and simulator.",
        "power": "Measure supply power by block: static, dynamic, per inference.",
        "montecarlo": "Draw chips that vary and count how many work.",
        "signoff": "Check a circuit as a tape-out review would: PASS or FAIL.",
        "layout": "Draw the mask of a trained network, and check it.",
    },
    "Make it better": {
        "harden": "Train, enlarge and trim a circuit until enough chips work.",
        "trim": "Set converters at the bias pins of chips, and count again.",
        "sweep": "Run a verb at every value of one or two of its options.",
        "explore": "Search for the cheapest circuits that still work.",
        "sensitivity": "Name the transistors that decide a sample, by adjoint.",
    },
    "Networks from rules and from papers": {
        "automaton": "Turn a regular language into a network with exact state.",
        "backbone": "Train the seed paper's backbone, which stays software.",
        "reproduce": "Train the tables of the papers and print both side by side.",
    },
    "Technologies and cells": {
        "characterize": "Sweep a cell: ideal, as drawn, calibrated.",
        "calibrate": "Measure a technology's cells and write its calibration.",
        "datasheet": "Measure any MOS netlist over conditions and chips.",
    },
    "Runs and this installation": {
        "report": "Write one page of what verbs found about a network.",
        "diff": "Say what changed between two runs, by how much, and where.",
        "merge": "Join the parts of a Monte Carlo run that were made apart.",
        "verify": "Say which kept files of a folder are whole.",
        "doctor": "Say what is installed and what is missing.",
    },
}
VERBS = {verb: text for verbs in GROUPS.values() for verb, text in verbs.items()}


_PLAIN = {
    r"is not a valid integer( range)?": "is not a whole number",
    r"is not a valid float( range)?": "is not a number",
}  # click's words -> ours


def load_verb(words: str) -> Verb:
    """Import a verb and return its click command; words: the verb's name, and a subcommand's name after a space."""
    name, *sub = words.split()
    command = import_module(f"cosim.verbs.{name}.command").command
    return command.commands[sub[0]] if sub else command


class _Verbs(click.Group):
    """The click group of all verbs, which lists them without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        return load_verb(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, VERBS))
        for heading, verbs in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(f"{verb:{width}}", text) for verb, text in verbs.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in VERBS:
            near = get_close_matches(args[0], VERBS, n=1)
            ctx.fail(f"No such command '{args[0]}'." + "".join(f" Did you mean '{verb}'?" for verb in near))
        ctx.invoked_subcommand = args[0]  # known while it is imported, too
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            raise StoppedError(stop, ctx.invoked_subcommand) from None


@click.command(cls=_Verbs, context_settings={**CONTEXT})
@click.version_option(__version__, prog_name="cosim")
def _cosim() -> None:
    """From a trained recurrent network to transistors, and back to its accuracy."""


def main() -> None:
    """Run the command line and exit; a user's mistake prints one line and gives an exit code, never a traceback."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a path may have bytes that are no text; as stderr does
    try:
        with stopping_on_signals():
            sys.exit(_cosim(prog_name="cosim", standalone_mode=False))  # context.exit's code; None from other verbs
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(error.exit_code)
    except click.ClickException as error:
        click.echo(f"cosim: {_format_usage(error)}", err=True)
        sys.exit(error.exit_code)
    except CosimError as error:
        click.echo(f"cosim: {spell_options(str(error))}", err=True)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):  # before a verb began
        click.echo("cosim: interrupted", err=True)
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(1)


def _where_files_go(command: click.Command) -> list[str]:
    """Return a hint for a file given as an argument too many: the option --data, if the verb has it; else nothing."""
    takes_data = any("--data" in one.opts for one in command.params)
    return ["files of data go to --data FILE"] if takes_data else []


def _format_usage(error: click.ClickException) -> str:
    """Return click's message for a wrong command line as one line in cosim's style, ending with the help to see."""
    text = " ".join(error.format_message().split())
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "cosim"
    for theirs, ours in _PLAIN.items():
        text = re.sub(theirs, ours, text)
    if isinstance(error, click.NoSuchOption) and path == "cosim":
        text = f"No such option '{error.option_name}' in front of a verb; options come after it"
    if text.startswith("Got unexpected extra argument") and context is not None:
        text = text.rstrip(".") + "".join(f"; {one}" for one in _where_files_go(context.command))
    end = "" if text.endswith((".", "?")) else "."
    return printable(f"{text[:1].lower()}{text[1:]}{end} See: {path} --help")
