"""The batched engine against ngspice on the same samples: states, readout and power.

    python benchmarks/bench_agreement.py FOLDER [NETWORK[@TECHNOLOGY][:SAMPLES] ...]

NETWORK: one that the package carries. A row for each: ties, states that differ outside them and behind turned ones are
counted as an audit counts them; apart: samples with a state that differs; readout: rms difference over the largest
current of an output, of all frames, and of those in which no state differs and all have latched; power: difference of
the mean. Finished samples are kept in FOLDER: the same command continues. The foundry kits: PDK_ROOT.
"""

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from smoke import shrink

from cosim.base.resources import trained_network_path
from cosim.engines.engine import Inference, Run
from cosim.engines.simulation.audit import judge
from cosim.engines.simulation.simulated import engine_named
from cosim.exchange.checkpoint import load_network
from cosim.technology.catalog import load_technology
from cosim.verbs.loading import compile_for, draw_samples

DEFAULT_SAMPLES = 100
TIMEOUT = 3600.0  # s a sample


def row(folder: Path, name: str, technology: str, samples: int) -> str:
    """A network in a technology, ngspice first."""
    network = load_network(trained_network_path(name))
    design = compile_for(network, name, load_technology(technology))
    clips = trained_network_path(name).with_name(f"{name}_clips.npz")
    test_set = draw_samples(network, clips if clips.exists() else None, samples, 0, print)
    found: dict[str, list[Inference]] = {}
    for engine in ("ngspice", "batch"):
        run = Run(folder / f"{name}-{technology}", 1, TIMEOUT, engine=engine)
        outcomes = list(engine_named(engine).infer(design, test_set, run, lambda done, total: None))
        assert all(isinstance(one, Inference) for one in outcomes), outcomes
        found[engine] = [one for one in outcomes if isinstance(one, Inference)]
    apart = sum(bool((a.states != b.states).any()) for a, b in zip(*found.values(), strict=True))
    audit = judge(design, found["batch"], found["ngspice"])
    truth, ours = (np.stack([one.readout for one in found[engine]]) for engine in ("ngspice", "batch"))
    sure = np.stack([_sure(a, b, design.nominal.technology.supply) for a, b in zip(*found.values(), strict=True)])
    scale = float(np.abs(truth).max())
    rms, clear = (float(np.sqrt(np.mean(one**2))) / scale for one in (ours - truth, (ours - truth)[sure]))
    power = float(np.mean([one.power_w for one in found["batch"]]) / np.mean([one.power_w for one in found["ngspice"]]))
    elsewhere = sum(bool(one.elsewhere) for one in found["batch"])
    return (
        f"{name:24} {technology:10} {audit.instances:4}  wrong {audit.wrong} of {audit.bits:,}, worst {audit.worst} A;"
        f" ties {audit.ties}, turned {audit.turned}, behind {audit.behind}; apart {apart};"
        f" readout {100 * rms:.3f} %, {100 * clear:.3f} %  power {100 * (power - 1):+.3f} %  elsewhere {elsewhere}"
    )


def _sure(truth: Inference, ours: Inference, supply: float) -> NDArray[np.bool_]:
    """(frames,): where every state is the same, and its latch 5 % of the supply or more from its threshold."""
    latched = ours.latches.min(axis=1) > 0.05 * supply if ours.latches.size else np.ones(len(ours.states), np.bool_)
    return latched & (truth.states == ours.states).all(axis=1)


def main() -> None:
    """A row for each that is asked for."""
    folder = Path(sys.argv[1])
    for text in sys.argv[2:] or ["digits_d4", "digits_d8"]:
        named, _, samples = text.partition(":")
        name, _, technology = named.partition("@")
        print(row(folder, name, technology or "generic180", int(samples or DEFAULT_SAMPLES)), flush=True)


if __name__ == "__main__":
    shrink(globals(), "agreement", "digits_d4:1")
    main()
