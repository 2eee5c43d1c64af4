"""Recall the bit last written: the flip-flop language (arXiv 2306.00946), which networks whose memory fades get wrong.

A string alternates instructions and bits and begins with a write: `w 1 i 0 r 1 i 0 r` is followed by 1. The bit behind
`w` is to be kept, that behind `i` is random, and the one behind `r`, which the network must tell, is the one last
written.
"""

import numpy as np

from cosim.base.errors import InputError
from cosim.tasks.task import StepTargets, StepTask, Task

SYMBOLS = ("w", "r", "i", "0", "1")
WRITE, READ, IGNORE = range(3)
PAIRS = 31  # of instruction and bit, in front of the last read; 63 symbols in all
LONGER = 8  # test strings over the longest training string, in pairs
DENSE, SPARSE = 0.8, 0.98  # chance of an instruction to be `i`; `w` and `r` share the rest


def generate_flip_flop_task(pairs: int = PAIRS, n_train: int = 4096, n_test: int = 1024, seed: int = 0) -> Task:
    """Generate the data of the flip-flop task.

    x (n, time, 5): one symbol a step, as one bit for each of SYMBOLS, up to a last `r`; y (n,) the bit last written.

    Training strings are dense, of 1 .. `pairs` pairs in front of that `r`, uniformly; test strings have 8 times as
    many, and every other one is sparse. The same for the same seed.
    """
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, pairs + 1, n_train)
    x_train, y_train = _strings(lengths, np.full(n_train, DENSE), rng)
    full = np.full(n_test, LONGER * pairs)
    x_test, y_test = _strings(full, np.where(np.arange(n_test) % 2, SPARSE, DENSE), rng)
    parts = x_train, y_train, x_test, y_test, 2 * lengths + 1, 2 * full + 1
    return Task("flip-flop", *parts, ("0", "1"), np.zeros(len(SYMBOLS)), np.ones(len(SYMBOLS)))


def generate_flip_flop_steps(
    n: int, tokens: int = 64, ignored: float = DENSE, seed: int | np.random.Generator = 0
) -> StepTargets:
    """Generate strings of the flip-flop data with a target at each read.

    x (n, tokens - 1, 5), bits for SYMBOLS, the last of them `r`; y (n, tokens - 1) the bit behind each `r`.

    Counted are those steps. `ignored`: chance of an instruction to be `i`. A generator as `seed` gives new strings at
    each call. Raises InputError for an odd number of tokens, or fewer than 4, and for no strings.
    """
    if tokens < 4 or tokens % 2 or n < 1 or not 0 <= ignored <= 1:
        raise InputError(
            "the flip-flop task must have strings, an even number of tokens from 4 and a chance of i in [0, 1], not "
            f"{n}, {tokens} and {ignored}"
        )
    pairs = np.full(n, tokens // 2 - 1)
    x, last = _strings(pairs, np.full(n, ignored), np.random.default_rng(seed))
    mask = x[:, :, READ] == 1
    y = np.zeros(mask.shape, dtype=np.int64)
    y[:, :-1] = mask[:, :-1] & (x[:, 1:, SYMBOLS.index("1")] == 1)
    y[:, -1] = last
    return StepTargets(x, y, mask)


def _strings(pairs: np.ndarray, ignored: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Generate flip-flop data of so many pairs and such a chance of `i`, (n,) each.

    x (n, 2 longest + 1, 5) float32 and y (n,) int64.
    """
    n, longest = len(pairs), int(pairs.max(initial=0))
    instructions, bits, written = _draw(longest, ignored, rng)
    symbols = np.full((n, 2 * longest + 1), READ)
    symbols[:, 0:-1:2], symbols[:, 1::2] = instructions, SYMBOLS.index("0") + bits
    symbols[np.arange(n), 2 * pairs] = READ
    x = np.eye(len(SYMBOLS), dtype=np.float32)[symbols]
    x[np.arange(2 * longest + 1) > 2 * pairs[:, None]] = 0.0
    return x, written[np.arange(n), pairs - 1].astype(np.int64)


def generate_flip_flop_reads_task(
    tokens: int = 512, n_train: int = 4096, n_valid: int = 512, n_test: int = 1024, seed: int = 0
) -> StepTask:
    """Generate the data of the flip-flop task with a target at each read.

    Strings are dense to train and validate, sparse to test, all of one length; a seed determines them.
    """
    rng = np.random.default_rng(seed)
    train, valid = (generate_flip_flop_steps(n, tokens, DENSE, rng) for n in (n_train, n_valid))
    test = generate_flip_flop_steps(n_test, tokens, SPARSE, rng)
    return StepTask("flip-flop-reads", train, valid, test, ("0", "1"))


def _draw(longest: int, ignored: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw for the flip-flop data instructions, the bits behind them and the bits last written before or there.

    Each is (n, longest) int64.
    """
    n, place = len(ignored), np.arange(longest)
    instructions = rng.integers(WRITE, READ + 1, (n, longest))
    instructions[rng.random((n, longest)) < ignored[:, None]] = IGNORE
    instructions[:, :1] = WRITE
    bits = rng.integers(0, 2, (n, longest))
    last_write = np.maximum.accumulate(np.where(instructions == WRITE, place, 0), axis=1)
    written = np.take_along_axis(bits, last_write, axis=1)
    return instructions, np.where(instructions == READ, written, bits), written
