"""The command line: one thin function a verb, imported when it is called, so that `cosim --help` answers at once."""

import sys
from importlib import import_module

import click

from cosim import __version__
from cosim.errors import CosimError

VERBS = {
    "demo": "Train, compile, simulate and compare a small network on real data.",
    "train": "Train a hardware network on a task.",
    "inspect": "Print what is in a checkpoint.",
    "compile": "Compile a trained network to a transistor netlist.",
    "simulate": "Run test samples through ngspice at transistor level.",
    "compare": "Hold software, behavioral and ngspice against each other.",
    "power": "Supply power per block: static, dynamic, energy; ngspice and behavioral.",
    "montecarlo": "Draw chips that vary and count how many work.",
    "trim": "Set converters at the bias pins of drawn chips, and count again.",
    "report": "Write a Monte Carlo run's page.",
    "characterize": "Sweep a cell: ideal, as drawn, calibrated.",
    "calibrate": "Measure a technology's cells and write its calibration.",
    "doctor": "Say what is installed and what is missing.",
}


class _LazyGroup(click.Group):
    """Lists the verbs without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        return import_module(f"cosim.cli.{cmd_name}").command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


@click.command(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="cosim")
def _cosim() -> None:
    """From a trained recurrent network to transistors, and back to its accuracy."""


def main() -> None:
    """Entry point: a user's mistake is one message and an exit code, never a traceback."""
    try:
        code = _cosim(prog_name="cosim", standalone_mode=False)  # that of context.exit, None from a verb that returns
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except CosimError as error:
        click.echo(f"cosim: {error}", err=True)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        again = "the same command continues where it stopped (train, montecarlo: add --resume; trim, calibrate: anew)"
        click.echo(f"cosim: interrupted; {again}", err=True)
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(1)
    if code:
        sys.exit(code)
