"""Flip single bits of everything that is kept: `python tests/fuzz/flips.py SEED COUNT` prints what came of it as JSON.

A file with one other bit must be refused, or count as not there, or give what the whole one gives: never other numbers.
What has a checksum must not be taken for what it was, unless it has been written again as it was.
The files take turns, and within each every bit is as likely as any other. A flip is found again by seed and number:
`python tests/fuzz/flips.py SEED COUNT NUMBER` makes that one alone.
"""

import json
import os
import random
import sys
import tempfile
import traceback
from dataclasses import fields, is_dataclass
from pathlib import Path

import numpy as np
import torch
from kept import File, Form, archive, kept_files
from targets import one_layer, small_network, stopped_training

from cosim.base.errors import CosimError
from cosim.base.store import keep_result, kept_result
from cosim.exchange.checkpoint import load_network, save_checkpoint

OUTCOMES = "refused", "measured anew", "written again", "the same"
PLAIN = Form(lambda rng, content: content)  # without a checksum over all of it


def plain(value: object) -> object:
    """The value as texts and tuples, equal where all numbers in it are equal to their last bit."""
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tobytes()
    if isinstance(value, torch.Tensor):
        return plain(value.numpy())
    if is_dataclass(value):
        return type(value).__name__, tuple((one.name, plain(getattr(value, one.name))) for one in fields(value))
    if isinstance(value, dict):
        return tuple((repr(key), plain(item)) for key, item in value.items())
    return tuple(map(plain, value)) if isinstance(value, list | tuple) else repr(value)


def models(folder: Path) -> list[File]:
    """Checkpoints, the state of a training that has stopped, and a finished inference."""
    found = [stopped_training(folder / "state" / "model.npz")]
    for suffix in (".npz", ".pt"):
        path = folder / f"model{suffix}"
        save_checkpoint(path, small_network(4))
        found.append(File(f"model{suffix}", path, lambda path=path: load_network(path), PLAIN))
    arrays = {"states": np.ones((3, 2), np.int16), "power_w": np.array(1e-9)}
    keep_result(folder, "0123", arrays)
    read = lambda: kept_result(folder, "0123", arrays)  # noqa: E731
    return [*found, File("inference", folder / "0123.npz", read, archive(key="0123"))]


def flip(one: File, whole: bytes, wanted: object, rng: random.Random) -> str:
    """What came of one flipped bit."""
    bit = rng.randrange(8 * len(whole))
    content = bytearray(whole)
    content[bit // 8] ^= 1 << bit % 8
    one.path.write_bytes(content)
    try:
        found, left = one.read(), one.path.read_bytes()
    except CosimError:
        return "refused"
    except Exception:
        return f"bit {bit}: {traceback.format_exc()}"
    finally:
        one.path.write_bytes(whole)
    if found is None:
        return "measured anew"
    if plain(found) != wanted:
        return f"bit {bit}: other numbers"
    return "written again" if left == whole else "the same"


def main(seed: int, count: int, only: int | None = None) -> dict[str, object]:
    """Counts of outcomes by file, and the faults."""
    faults, outcomes = [], {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        os.chdir(folder)
        found = [one for one in kept_files(folder / "all", one_layer(small_network(4))) if one.form.fits] + models(
            folder
        )
        whole = [one.path.read_bytes() for one in found]
        wanted = [plain(one.read()) for one in found]
        for number in range(count) if only is None else [only]:
            k = number % len(found)
            outcome = flip(found[k], whole[k], wanted[k], random.Random(f"{seed} {number}"))
            kinds = outcomes.setdefault(found[k].name, dict.fromkeys(OUTCOMES, 0))
            if outcome in kinds:
                kinds[outcome] += 1
            else:
                faults.append(f"seed {seed}, number {number}, {found[k].name}: {outcome}")
    sealed = [one.name for one in found if one.form.fits]
    return {"flips": count, "faults": faults, "outcomes": outcomes, "sealed": sealed}


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else None)))
