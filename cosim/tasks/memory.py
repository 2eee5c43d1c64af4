"""Sequences that ask for memory, all of them generated: copies, parity, flip-flop strings, products of two lags.

Copy: hold the first of many values (seed paper arXiv 2605.11855, appendix G.2), which is pure memory. The paper's
network recognises the first step by its learned positions, which have no circuit: copy-first marks that step by a
second input. Copy-value is the task as published, without the mark.

Parity: tell whether a binary sequence holds an even or odd number of ones (appendix G.5.1).

Flip-flop: recall the bit last written (arXiv 2306.00946), which networks whose memory fades get wrong. A string
alternates instructions and bits and begins with a write: `w 1 i 0 r 1 i 0 r` is followed by 1. The bit behind `w` must
be kept, the bit behind `i` is random, and the bit behind `r`, which the network must tell, is the bit last written.

Delayed product: tell the sign of x[t - 9] x[t - 17] at each step. Values of two lags must be available at once, as in a
line of delays.
"""

from dataclasses import replace

import numpy as np

from cosim.base.errors import InputError
from cosim.network.reference import valid_steps
from cosim.tasks.task import StepTargets, StepTask, Task, make_task

COPY_STEPS, MOST_STEPS = 100, 10_000  # the shortest and the longest sequence in the seed paper
ITEMS = 15
SETS, PUBLISHED_SETS = (4096, 1024), (12_000, 2000)  # training, of which validation is held out, and test
MEMORY = 1 << 30  # bytes of inputs beyond which the sets shrink
MOST_MEMORY = 2 << 30
_BLOCK = 256  # sequences drawn at once, in double precision


def copy_sets(steps: int, features: int, *, published: bool = False) -> tuple[int, int]:
    """Return the numbers of sequences for training and test of a copy task, fewer if they would take more than 1 GiB.

    With `published` they are the seed paper's 12,000, of which 2,000 are for validation, and 2,000, whatever they take.
    Raises InputError where these take more than 2 GiB, and for a number of steps beyond 2 .. MOST_STEPS.
    """
    if not 2 <= steps <= MOST_STEPS:
        raise InputError(f"a sequence to copy from must have 2 to {MOST_STEPS} steps, not {steps}; give another length")
    each = 4 * steps * features
    if published and each * sum(PUBLISHED_SETS) > MOST_MEMORY:
        raise InputError(
            f"{sum(PUBLISHED_SETS)} sequences of {steps} steps of {features} inputs would take "
            f"{each * sum(PUBLISHED_SETS) / 1e9:.3g} GB of memory; leave -published out, or take fewer steps"
        )
    share = 1.0 if published else min(1.0, MEMORY / (each * sum(SETS)))
    train, test = PUBLISHED_SETS if published else SETS
    return int(share * train), int(share * test)


def generate_copy_first_task(
    steps: int = COPY_STEPS, n_train: int = 4096, n_test: int = 1024, seed: int = 0, *, noise: bool = True
) -> Task:
    """Generate the regression of appendix G.2.3; without `noise` all values after the first are 0 (G.2.2).

    x (n, steps, 2): a value uniform in [-1, 1], and a mark, 1 at the first step, else 0; y (n, 1): the value at the
    first step. Equal seeds give equal data.
    """
    x = np.zeros((n_train + n_test, steps, 2), dtype=np.float32)
    rng = np.random.default_rng(seed)
    for start in range(0, len(x), _BLOCK):
        part = x[start : start + _BLOCK, :, 0]
        part[:] = rng.uniform(-1, 1, part.shape)
    x[:, 0, 1] = 1.0
    y = x[:, 0, :1].copy()
    if not noise:
        x[:, 1:, 0] = 0
    train, test = (x[:n_train], y[:n_train]), (x[n_train:], y[n_train:])
    name = "copy-first" if noise else "copy-first-quiet"
    name = name if steps == COPY_STEPS else f"{name}-{steps}"
    return make_task(name, train, test, (), (np.array([-1.0, 0.0]), np.array([2.0, 1.0])))


def generate_copy_value_task(
    steps: int = COPY_STEPS, n_train: int = 4096, n_test: int = 1024, seed: int = 0, *, noise: bool = True
) -> Task:
    """Generate the copy-first task without its mark, x (n, steps, 1): only positions tell which value was the first."""
    task = generate_copy_first_task(steps, n_train, n_test, seed, noise=noise)
    x_train, x_test = (np.ascontiguousarray(x[:, :, :1]) for x in (task.x_train, task.x_test))
    name = task.name.replace("copy-first", "copy-value")
    return replace(task, name=name, x_train=x_train, x_test=x_test, offset=task.offset[:1], scale=task.scale[:1])


def generate_copy_item_task(steps: int = COPY_STEPS, n_train: int = 4096, n_test: int = 1024, seed: int = 0) -> Task:
    """Generate the classification of appendix G.2.1.

    x (n, steps, 15): one of 15 inputs is 1 at the first step, all are 0 afterwards; y (n,): the index of that input.
    Equal seeds give equal data.
    """
    y = np.random.default_rng(seed).integers(ITEMS, size=n_train + n_test)
    x = np.zeros((len(y), steps, ITEMS), dtype=np.float32)
    x[np.arange(len(y)), 0, y] = 1.0
    train, test = (x[:n_train], y[:n_train]), (x[n_train:], y[n_train:])
    name = "copy-item" if steps == COPY_STEPS else f"copy-item-{steps}"
    return make_task(name, train, test, tuple(map(str, range(ITEMS))), (np.zeros(ITEMS), np.ones(ITEMS)))


PUBLISHED_TRAIN, PUBLISHED_TEST = (50, 400), (50, 1000)  # shortest and longest sequence


def generate_parity_task(steps: int = 50, n_train: int = 4096, n_test: int = 1024, seed: int = 0) -> Task:
    """Generate the parity task: x (n, steps, 1) of random bits, and y (n,), the parity of the valid ones.

    Training lengths are uniform in 1 .. steps, because short sequences teach what one bit does; test sequences have all
    steps. Equal seeds give equal data.
    """
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2, (n_train + n_test, steps, 1)).astype(np.float32)
    lengths = np.concatenate([rng.integers(1, steps + 1, n_train), np.full(n_test, steps)])
    y = _pad_and_count(x, lengths)
    train, test = ((x[part], y[part], lengths[part]) for part in (slice(n_train), slice(n_train, None)))
    return make_task("parity", train, test, ("even", "odd"), (np.zeros(1), np.ones(1)))


def generate_published_parity_task(n_train: int = 4096, n_test: int = 1024, seed: int = 0) -> Task:
    """Generate the parity task with the seed paper's lengths, 50 .. 400 for training and 50 .. 1000 for the test.

    Lengths are uniform; x_train (n, 400, 1) and x_test (n, 1000, 1) are 0 beyond each. Equal seeds give equal data; the
    paper draws new sequences at every iteration.
    """
    rng = np.random.default_rng(seed)

    def draw(count: int, shortest: int, longest: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        x = rng.integers(0, 2, (count, longest, 1)).astype(np.float32)
        lengths = rng.integers(shortest, longest + 1, count)
        return x, _pad_and_count(x, lengths), lengths

    train, test = draw(n_train, *PUBLISHED_TRAIN), draw(n_test, *PUBLISHED_TEST)
    return make_task("parity-published", train, test, ("even", "odd"), (np.zeros(1), np.ones(1)))


def _pad_and_count(x: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Set x (n, time, 1) to 0 beyond the samples' lengths (n,), and return the parity (n,) of the valid bits."""
    x[~valid_steps(lengths, x.shape[1])] = 0.0
    return x.sum(axis=(1, 2)).astype(np.int64) % 2


SYMBOLS = ("w", "r", "i", "0", "1")
WRITE, READ, IGNORE = range(3)
PAIRS = 31  # of instruction and bit, in front of the last read; 63 symbols in all
LONGER = 8  # test strings over the longest training string, in pairs
DENSE, SPARSE = 0.8, 0.98  # chance of an instruction to be `i`; `w` and `r` share the rest


def generate_flip_flop_task(pairs: int = PAIRS, n_train: int = 4096, n_test: int = 1024, seed: int = 0) -> Task:
    """Generate the flip-flop task, with one target a string.

    x (n, time, 5): one symbol a step, as one bit for each of SYMBOLS, up to a last `r`; y (n,): the bit last written.
    Training strings are dense (chance of `i` DENSE) and have 1 .. `pairs` pairs before the last `r`, uniformly. Test
    strings have 8 times `pairs`, and every other one is sparse (SPARSE). Equal seeds give equal data.
    """
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, pairs + 1, n_train)
    train = (*_strings(lengths, np.full(n_train, DENSE), rng), 2 * lengths + 1)
    full = np.full(n_test, LONGER * pairs)
    test = (*_strings(full, np.where(np.arange(n_test) % 2, SPARSE, DENSE), rng), 2 * full + 1)
    return make_task("flip-flop", train, test, ("0", "1"), (np.zeros(len(SYMBOLS)), np.ones(len(SYMBOLS))))


def generate_flip_flop_steps(
    n: int, tokens: int = 64, ignored: float = DENSE, seed: int | np.random.Generator = 0
) -> StepTargets:
    """Generate n flip-flop strings with a target at each read.

    x (n, tokens - 1, 5): bits for SYMBOLS, the last symbol is `r`; y (n, tokens - 1): the bit behind each `r`; only
    these steps count.

    ignored: chance of an instruction to be `i`; seed: a generator gives new strings at each call. Raises InputError for
    a number of tokens that is odd or less than 4, for no strings, and for a chance outside [0, 1].
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
    """Generate the inputs and answers of flip-flop strings, x (n, 2 longest + 1, 5) float32 and y (n,) int64.

    pairs: pairs before the last read, (n,); ignored: chance of `i`, (n,).
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
    """Generate the flip-flop task with a target at each read; all strings have `tokens` tokens.

    Training and validation strings are dense, test strings sparse. Equal seeds give equal data.
    """
    rng = np.random.default_rng(seed)
    train, valid = (generate_flip_flop_steps(n, tokens, DENSE, rng) for n in (n_train, n_valid))
    test = generate_flip_flop_steps(n_test, tokens, SPARSE, rng)
    return StepTask("flip-flop-reads", train, valid, test, ("0", "1"))


def _draw(longest: int, ignored: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw flip-flop instructions, the bits behind them, and the bit last written up to each, (n, longest) int64 each.

    ignored: chance of the instruction `i`, (n,).
    """
    n, place = len(ignored), np.arange(longest)
    instructions = rng.integers(WRITE, READ + 1, (n, longest))
    instructions[rng.random((n, longest)) < ignored[:, None]] = IGNORE
    instructions[:, :1] = WRITE
    bits = rng.integers(0, 2, (n, longest))
    last_write = np.maximum.accumulate(np.where(instructions == WRITE, place, 0), axis=1)
    written = np.take_along_axis(bits, last_write, axis=1)
    return instructions, np.where(instructions == READ, written, bits), written


PRODUCT_STEPS = 60
LAGS = (9, 17)


def generate_delayed_product(n: int, steps: int = PRODUCT_STEPS, seed: int | np.random.Generator = 0) -> StepTargets:
    """Generate x (n, steps, 1), -1 or 1 at random, and y (n, steps), 1 where x[t - 9] x[t - 17] > 0, else 0.

    Only steps t >= 17 count. seed: a generator gives new sequences at each call. Raises InputError for fewer than 18
    steps.
    """
    if steps <= max(LAGS):
        raise InputError(f"the delayed product must have at least {max(LAGS) + 1} steps, not {steps}; give more")
    signs = 2 * np.random.default_rng(seed).integers(0, 2, (n, steps)) - 1
    near, far = LAGS
    y = np.zeros((n, steps), dtype=np.int64)
    y[:, far:] = signs[:, far - near : steps - near] * signs[:, : steps - far] > 0
    mask = np.broadcast_to(np.arange(steps) >= far, (n, steps)).copy()
    return StepTargets(signs[:, :, None].astype(np.float32), y, mask)


def generate_delayed_product_task(
    steps: int = PRODUCT_STEPS, n_train: int = 4096, n_valid: int = 512, n_test: int = 1024, seed: int = 0
) -> StepTask:
    """Generate the delayed product's sequences for training, validation and test; equal seeds give equal data."""
    rng = np.random.default_rng(seed)
    train, valid, test = (generate_delayed_product(n, steps, rng) for n in (n_train, n_valid, n_test))
    return StepTask("delayed-product", train, valid, test, ("-1", "1"))
