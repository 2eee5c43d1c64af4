"""Command `cosim layout`: draw a compiled network as a checked mask."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cosim.base.errors import InputError
from cosim.cli.progress import say
from cosim.cli.session import VerbSession
from cosim.cli.settings import RunVerb
from cosim.cli.verb import Result, group_of, switch, verb
from cosim.verbs.common import Compiling, check_outputs, load_design, network_argument, output_option

if TYPE_CHECKING:
    from cosim.mask.produce import ProducedLayout


@dataclass(frozen=True, kw_only=True)
class LayoutOptions:
    """Options of `cosim layout`: network, folder, checks by the kit, metal fill, and compiler."""

    network_file: Path = network_argument()
    output: Path = output_option("layout")
    check: bool = switch("Run the kit's DRC and LVS in the klayout application.")
    fill: bool = switch("Add squares of metal up to the foundry's density.")
    gzip: bool = switch("Write layout.gds.gz, too.")
    compiling: Compiling = group_of(Compiling)


def run(options: LayoutOptions, session: VerbSession) -> Result:
    """Draw NETWORK as a macro: GDS, LVS netlist, pins, areas, capacitance of wires.

    The folder receives layout.gds, lvs.sp (the netlist that is simulated, a line a unit), pins.csv in order from the
    left, area.csv by block, wires.csv, which compare --extracted reads, positions.csv, which montecarlo --gradient
    reads, couplings.csv, resistance.csv, layout.json and pictures. Every drawn unit is held against its line of lvs.sp.
    Where the kit's decks run, checks.json and violations.csv have what they find, with coordinates; exit status 1 where
    DRC or LVS fails. Density is printed and not counted: fill is left to the chip that the macro goes on, where --fill
    does not add it.
    """
    from cosim.engines.behavioral.model import supply_current
    from cosim.mask.checks import CheckResult, find_checker
    from cosim.mask.chip import drawing_of
    from cosim.mask.gds import geometry
    from cosim.mask.produce import check_layout, make_layout
    from cosim.technology.catalog import load_technology

    output, compiling = options.output, options.compiling
    if compiling.netlist is not None:
        raise InputError(
            "--netlist: a layout is of the compiled circuit; write new sizes into a file for --overrides, which it "
            "draws"
        )
    check_outputs("layout", output)
    technology = load_technology(compiling.technology, compiling.pdk_root)
    rules = drawing_of(technology)
    geometry()  # said before the work
    checker = find_checker(technology, rules) if options.check else None
    design, _ = load_design(options.network_file, compiling)
    session.take_folder("layout", output)
    made = make_layout(design, output, supply=supply_current(design), packed=options.gzip, filled=options.fill)
    session.echo(f"{options.network_file} on {technology.name}")
    session.echo("\n".join(_format_layout(made)))
    passed = made.units.passed
    if checker is not None:

        def finished(one: CheckResult) -> None:
            say(f"{one.check}: {one.summary}")

        found = check_layout(output, checker, finished)
        for one in found:
            session.echo(f"  {one.check:<17} {one.summary}")
            passed &= one.passed or one.check == "density"
    return Result(lines=[f"  written           {output}"], fault=None if passed else "")


def _format_layout(made: "ProducedLayout") -> list[str]:
    """Return lines of text on a drawing's size, the resistance of its wires, and its metal fill."""
    (x1, y1, x2, y2), worst = made.chip.box, made.resistance[0]
    lines = [
        f"  size              {(x2 - x1) / 1000:.1f} x {(y2 - y1) / 1000:.1f} um",
        f"  area              {made.chip.area * 1e12:.0f} um2, {made.ratio:.2f} times the gates",
        f"  units             {made.units.summary}",
        f"  resistance        at most {100 * worst.worst:.2g} % of U_T or of a frame, on {worst.net}",
    ]
    for layer, (before, after) in made.metal.items():
        lines.append(f"  {layer:<17} {before:.1%} of the area, {after:.1%} with fill")
    return lines + [f"  no picture        of {cell} alone: {reason}" for cell, reason in made.without_picture.items()]


command = verb(LayoutOptions, run, RunVerb)
