"""Conversion of a regular expression to its minimal automaton, by the positions of its symbols.

    a b    a|b    a*  a+  a?    (a)    [abc]  [a-c]  [^ab]    .  any symbol    \\x  the symbol x

Each place of the expression that stands for a symbol is a position; the positions that may come first, last and behind
each other follow from its structure (V. M. Glushkov, Russ. Math. Surv. 16 (1961) 1). A state is the set of positions
that may come next, and whether the string so far matches as a whole. Sets of positions are stored as bits of integers,
sets of symbols as intervals; symbols that no part of the expression tells apart are treated as one until the end. Time
and memory are bounded by limits on characters, symbols, ways in which positions follow each other, and states.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from cosim.automata.automaton import Automaton, Whole, minimise
from cosim.base.errors import InputError
from cosim.base.text import shown

MOST_CHARACTERS = 10_000
MOST_SYMBOLS = 256  # each is an input of the circuit
MOST_STATES = 2000  # before they are minimised
_MOST_TRANSITIONS = 100_000
_MOST_WAYS = 500_000  # in which one position follows another
_MOST_STEPS = 20_000_000  # positions in all sets that are looked at, and their number
_MOST_SETS = 100_000
Intervals = tuple[tuple[int, int], ...]  # of code points, first and last


def automaton_of(pattern: str, alphabet: str | None = None) -> Automaton:
    """Return the minimal automaton whose output is `yes` after each string that matches a pattern, else `no`.

    pattern: a regular expression; alphabet: the automaton's symbols, by default those that the pattern names. Raises
    InputError that gives the place of a fault in the pattern, or the part that makes the automaton too large.
    """
    if len(pattern) > MOST_CHARACTERS:
        raise InputError(
            f"pattern {shown(pattern)} must have at most {MOST_CHARACTERS} characters, not {len(pattern)}; a table of "
            "states in a .json file may say it shorter"
        )
    parser = _Parser(pattern)
    whole = parser.parse()
    symbols = _symbols(parser, alphabet)
    of_symbol = _positions_of(parser.leaves, symbols)
    kinds = list(dict.fromkeys(of_symbol))  # symbols that the same positions read are one
    follow, output = _subsets(parser, whole, kinds)
    names = tuple(f"s{k}" for k in range(len(follow)))
    found = minimise(Automaton(tuple(map(str, range(len(kinds)))), names, ("no", "yes"), follow, 0, output))
    columns = [kinds.index(one) for one in of_symbol]
    return Automaton(symbols, found.states, found.labels, found.next[:, columns], found.start, found.output)


def _symbols(parser: "_Parser", alphabet: str | None) -> tuple[str, ...]:
    """Return the automaton's symbols in order: of the alphabet, else those that the pattern names, by code point.

    Raises InputError for no symbol, too many symbols, and a symbol in the pattern that the alphabet lacks.
    """
    pattern, named = shown(parser.pattern), _merged(parser.named)
    count = sum(last - first + 1 for first, last in named)
    symbols = tuple(dict.fromkeys(alphabet or ""))
    if alphabet:
        codes = (code for first, last in named for code in range(first, last + 1))
        if strange := next((chr(code) for code in codes if chr(code) not in symbols), None):
            raise InputError(f"pattern {pattern} names {strange!r}, which --alphabet lacks: {shown(''.join(symbols))}")
        count = len(symbols)
    elif not count:
        raise InputError(f"pattern {pattern} names no symbol; give the alphabet with --alphabet")
    if count > MOST_SYMBOLS:
        raise InputError(
            f"the alphabet of pattern {pattern} must have at most {MOST_SYMBOLS} symbols, each an input of the "
            f"circuit, not {count}; name fewer, or let one symbol stand for several"
        )
    if not alphabet:
        symbols = tuple(chr(code) for first, last in named for code in range(first, last + 1))
    if strange := next((one for one in symbols if 0xD800 <= ord(one) <= 0xDFFF), None):
        raise InputError(f"pattern {pattern} names {strange!a}, which is no character; write it as UTF-8")
    return symbols


def _merged(named: list[tuple[int, int]]) -> Intervals:
    """Join overlapping and adjacent intervals of code points, first to last; return them in order."""
    found = list[tuple[int, int]]()
    for first, last in sorted(named):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(last, found[-1][1])
        else:
            found.append((first, last))
    return tuple(found)


def _positions_of(leaves: "list[_Leaf]", symbols: tuple[str, ...]) -> list[int]:
    """Return for each symbol the set of positions that read it, as bits of an integer."""
    codes = sorted(map(ord, symbols))
    place = {code: k for k, code in enumerate(codes)}
    readers = dict[int, int]()  # set of symbols -> set of positions
    for k, leaf in enumerate(leaves):
        read = 0
        for first, last in leaf.intervals:
            begin, end = bisect_left(codes, first), bisect_right(codes, last)
            read |= (1 << end) - (1 << begin)
        if leaf.negative:
            read ^= (1 << len(codes)) - 1
        readers[read] = readers.get(read, 0) | 1 << k
    found = [0] * len(codes)
    for read, positions in readers.items():
        for k in _bits(read):
            found[k] |= positions
    return [found[place[ord(symbol)]] for symbol in symbols]


def _bits(number: int) -> Iterator[int]:
    """Yield the places of the 1 bits of a number, lowest first."""
    while number:
        low = number & -number
        yield low.bit_length() - 1
        number ^= low


@dataclass(frozen=True)
class _Leaf:
    """A position of the expression, which reads one symbol.

    intervals: the symbols that it may read, or with `negative` those that it may not; place: index in the pattern.
    """

    intervals: Intervals
    negative: bool
    place: int


@dataclass(frozen=True)
class _Part:
    """A part of the expression.

    empty: whether the empty string matches it; first, last: positions that may come first and last, as bits.
    """

    empty: bool
    first: int
    last: int


_EMPTY = _Part(empty=True, first=0, last=0)


def _subsets(parser: "_Parser", whole: _Part, kinds: list[int]) -> tuple[Whole, Whole]:
    """Find all states of the automaton: sets of positions that may come next, from the start on.

    kinds: sets of positions that read the same symbols. Return the state that each kind of symbol leads to, (states,
    kinds), and whether a string that leads to a state matches, (states,). Raises InputError for too many states.
    """
    places: dict[tuple[int, bool], int] = {(whole.first, whole.empty): 0}
    after: dict[int, int] = {}  # positions that have just been read -> state
    rows, waiting, steps = list[list[int]](), [whole.first], 0
    for ahead in waiting:  # it grows
        for read in (ahead & kind for kind in kinds):
            if read in after:
                continue
            steps += read.bit_count()
            behind = 0
            for position in _bits(read):
                behind |= parser.follow[position]
            key = behind, bool(read & whole.last)
            if key not in places:
                places[key] = len(places)
                waiting.append(behind)
            after[read] = places[key]
            many = len(places) > MOST_STATES or len(places) * len(kinds) > _MOST_TRANSITIONS
            if many or len(after) > _MOST_SETS or steps > _MOST_STEPS:
                raise _too_many(parser, max(after, key=int.bit_count), len(places) - 1)
        rows.append([after[ahead & kind] for kind in kinds])
    return np.array(rows, dtype=np.int64), np.array([int(matches) for _, matches in places], dtype=np.int64)


def _too_many(parser: "_Parser", largest: int, states: int) -> InputError:
    """Return the error that names the part of the expression with the largest set of positions."""
    places = [parser.leaves[position].place for position in _bits(largest)]
    part = shown(parser.pattern[places[0] : places[-1] + 1])
    return InputError(
        f"pattern {shown(parser.pattern)} has more than {states} states: up to {len(places)} places of its part "
        f"{part}, from character {places[0] + 1} to {places[-1] + 1}, may be reached at once; make that part shorter, "
        "or its symbols easier to tell apart"
    )


@dataclass
class _OpenGroup:
    """A group whose ) has not been read yet.

    either: alternatives before the last |; row: the items after it, without the last one; item: the last item.
    """

    either: _Part | None = None
    row: _Part = _EMPTY
    item: _Part | None = None


@dataclass
class _Parser:
    """A parser that reads a pattern once, from left to right, with a stack of open groups."""

    pattern: str
    at: int = 0
    leaves: list[_Leaf] = field(default_factory=list[_Leaf])
    follow: list[int] = field(default_factory=list[int])  # by position: those that may come behind it
    named: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    ways: int = 0

    def parse(self) -> _Part:
        stack = [_OpenGroup()]
        while self.at < len(self.pattern):
            sign = self.take()
            if sign == "(":
                stack.append(_OpenGroup())
            elif sign == ")":
                if len(stack) == 1:
                    raise self.fault("has a ) that nothing opens", back=1)
                self.add(stack[-2], self.close(stack.pop()))
            elif sign == "|":
                group = stack[-1]
                stack[-1] = _OpenGroup(self.close(group))
            elif sign in "*+?":
                self.repeat(stack[-1], sign)
            else:
                self.add(stack[-1], self.leaf(sign))
        if len(stack) > 1:
            raise self.fault("has a ( that nothing closes")
        return self.close(stack[0])

    def add(self, group: _OpenGroup, item: _Part) -> None:
        """Append an item to the row of a group."""
        if group.item is not None:
            group.row = self.both(group.row, group.item)
        group.item = item

    def close(self, group: _OpenGroup) -> _Part:
        """Return a group as one part that matches any of its alternatives."""
        row = group.row if group.item is None else self.both(group.row, group.item)
        if (other := group.either) is None:
            return row
        return _Part(other.empty or row.empty, other.first | row.first, other.last | row.last)

    def both(self, one: _Part, other: _Part) -> _Part:
        """Return the concatenation of two parts."""
        self.lead(one.last, other.first)
        first = one.first | (other.first if one.empty else 0)
        return _Part(one.empty and other.empty, first, other.last | (one.last if other.empty else 0))

    def repeat(self, group: _OpenGroup, sign: str) -> None:
        """Repeat the last item of a group: any number of times for *, at least once for +, at most once for ?."""
        if (item := group.item) is None:
            raise self.fault(f"has a {sign} behind nothing", back=1)
        if sign != "?":
            self.lead(item.last, item.first)
        group.item = _Part(item.empty or sign != "+", item.first, item.last)

    def lead(self, last: int, first: int) -> None:
        """Record that every position in `first` may follow every position in `last`; both are bits of an integer."""
        self.ways += last.bit_count()
        if self.ways > _MOST_WAYS:
            raise InputError(
                f"pattern {shown(self.pattern)} has parts that follow each other in more than {_MOST_WAYS} ways, up to "
                f"character {self.at}; make it shorter, or fewer of its parts such that they may be left out"
            )
        for position in _bits(last):
            self.follow[position] |= first

    def leaf(self, sign: str) -> _Part:
        """Return a new position as a part; sign: its first character: a symbol, a backslash, [ or a dot."""
        place, negative = self.at - 1, sign == "."
        intervals: Intervals = ()
        if sign == "[":
            negative, intervals = self.bracket()
        elif sign == "]":
            raise self.fault("has a ] that nothing opens", back=1)
        elif sign != ".":
            code = ord(self.escaped() if sign == "\\" else sign)
            intervals = ((code, code),)
        self.named += intervals
        position = 1 << len(self.leaves)
        self.leaves.append(_Leaf(intervals, negative, place))
        self.follow.append(0)
        return _Part(empty=False, first=position, last=position)

    def bracket(self) -> tuple[bool, Intervals]:
        """Read a set up to its ]; return whether it begins with ^, and the symbols that it names."""
        negative = self.peek() == "^"
        self.at += negative
        found = list[tuple[int, int]]()
        while (sign := self.peek()) != "]":
            if not sign:
                raise self.fault("has a [ that nothing closes")
            low = self.escaped() if self.take() == "\\" else sign
            high = low
            if self.peek() == "-" and self.pattern[self.at + 1 : self.at + 2] not in ("", "]"):
                self.at += 1
                high = self.escaped() if (end := self.take()) == "\\" else end
                if high < low:
                    raise self.fault(f"has the range {low}-{high}, whose end is before its begin", back=1)
            found.append((ord(low), ord(high)))
        self.at += 1
        return negative, _merged(found)

    def escaped(self) -> str:
        if not self.peek():
            raise self.fault("ends in a backslash")
        return self.take()

    def peek(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def take(self) -> str:
        self.at += 1
        return self.pattern[self.at - 1]

    def fault(self, what: str, back: int = 0) -> InputError:
        place = self.at - back
        return InputError(
            f"pattern {shown(self.pattern)} {what}, at character {place + 1}; write \\ in front of a symbol"
        )
