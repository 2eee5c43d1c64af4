"""From a regular expression to its minimal automaton, by derivatives.

    a b    a|b    a*  a+  a?    (a)    [abc]  [a-c]  [^ab]    .  any symbol    \\x  the symbol x

The derivative of an expression by a symbol is what may follow the symbol (J. A. Brzozowski, J. ACM 11 (1964) 481).
Expressions that are alike but for order, nesting or repetition of `|` count as one, so there are finitely many; each is
a state, and its output says whether the string so far matches as a whole.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cosim.automata.table import Automaton, minimise
from cosim.errors import InputError

_MOST = 2000  # derivatives before they are minimised
_NO_STRING, _EMPTY = ("no string",), ("empty",)
Expression = tuple[Any, ...]  # a kind and its parts, see the functions below


def automaton_of(pattern: str, alphabet: str | None = None) -> Automaton:
    """Outputs `yes` behind each string that matches the pattern, `no` behind others.

    alphabet: its symbols, default those that the pattern names. Raises InputError with the place of what is wrong.
    """
    reading = _Parser(pattern, frozenset())
    reading.parse()
    named = reading.named
    symbols = tuple(dict.fromkeys(alphabet)) if alphabet else tuple(sorted(named))
    if not symbols:
        raise InputError(f"pattern {pattern!r} names no symbol; give the alphabet with --alphabet")
    if strange := sorted(named - set(symbols)):
        raise InputError(f"pattern {pattern!r} names {strange[0]!r}, which --alphabet lacks: {''.join(symbols)}")
    first = _Parser(pattern, frozenset(symbols)).parse()
    found, follow, waiting = {first: 0}, list[list[int]](), [first]
    for expression in waiting:
        row: list[int] = []
        for symbol in symbols:
            after = _derivative(expression, symbol)
            if after not in found:
                found[after] = len(found)
                waiting.append(after)
            row.append(found[after])
        follow.append(row)
        if len(found) > _MOST:
            raise InputError(f"pattern {pattern!r} has more than {_MOST} derivatives; it must be simpler")
    output = np.array([int(_empty(expression)) for expression in waiting], dtype=np.int64)
    names = tuple(f"s{k}" for k in range(len(waiting)))
    return minimise(Automaton(symbols, names, ("no", "yes"), np.array(follow, dtype=np.int64), 0, output))


def _either(one: Expression, other: Expression) -> Expression:
    parts = {*(one[1] if one[0] == "either" else {one}), *(other[1] if other[0] == "either" else {other})}
    parts.discard(_NO_STRING)
    if len(parts) < 2:
        return next(iter(parts), _NO_STRING)
    return "either", frozenset(parts)


def _both(one: Expression, other: Expression) -> Expression:
    if _NO_STRING in (one, other):
        return _NO_STRING
    if one == _EMPTY:
        return other
    if other == _EMPTY:
        return one
    return ("both", one[1], _both(one[2], other)) if one[0] == "both" else ("both", one, other)


def _any_number(one: Expression) -> Expression:
    return _EMPTY if one in (_EMPTY, _NO_STRING) else one if one[0] == "any number" else ("any number", one)


def _one_of(symbols: frozenset[str]) -> Expression:
    return ("one of", symbols) if symbols else _NO_STRING


def _empty(expression: Expression) -> bool:
    """Whether the empty string matches."""
    match expression[0]:
        case "empty" | "any number":
            return True
        case "both":
            return _empty(expression[1]) and _empty(expression[2])
        case "either":
            return any(map(_empty, expression[1]))
        case _:
            return False


def _derivative(expression: Expression, symbol: str) -> Expression:
    """What may follow the symbol."""
    match expression[0]:
        case "one of":
            return _EMPTY if symbol in expression[1] else _NO_STRING
        case "both":
            after = _both(_derivative(expression[1], symbol), expression[2])
            return _either(after, _derivative(expression[2], symbol)) if _empty(expression[1]) else after
        case "either":
            found = _NO_STRING
            for part in sorted(expression[1], key=repr):
                found = _either(found, _derivative(part, symbol))
            return found
        case "any number":
            return _both(_derivative(expression[1], symbol), expression)
        case _:
            return _NO_STRING


@dataclass
class _Parser:
    """Recursive descent: either, then in a row, then repetition, then one symbol, a set or a group."""

    pattern: str
    symbols: frozenset[str]
    at: int = 0
    named: set[str] = field(default_factory=set[str])

    def parse(self) -> Expression:
        found = self.either()
        if self.at < len(self.pattern):
            raise self.fault("has a ) that nothing opens")
        return found

    def either(self) -> Expression:
        found = self.row()
        while self.peek() == "|":
            self.at += 1
            found = _either(found, self.row())
        return found

    def row(self) -> Expression:
        found = _EMPTY
        while self.peek() not in ("", "|", ")"):
            found = _both(found, self.repeated())
        return found

    def repeated(self) -> Expression:
        found = self.single()
        while self.peek() in ("*", "+", "?"):
            sign = self.take()
            more = _any_number(found)
            found = more if sign == "*" else _both(found, more) if sign == "+" else _either(found, _EMPTY)
        return found

    def single(self) -> Expression:
        sign = self.take()
        match sign:
            case "(":
                found = self.either()
                if self.peek() != ")":
                    raise self.fault("has a ( that nothing closes")
                self.at += 1
                return found
            case "[":
                return _one_of(self.bracket())
            case ".":
                return _one_of(self.symbols)
            case "*" | "+" | "?":
                raise self.fault(f"has a {sign} behind nothing", back=1)
            case "]":
                raise self.fault("has a ] that nothing opens", back=1)
            case _:
                symbol = self.escaped() if sign == "\\" else sign
                self.named.add(symbol)
                return _one_of(frozenset(symbol))

    def bracket(self) -> frozenset[str]:
        """The symbols between [ and ]."""
        negative = self.peek() == "^"
        self.at += negative
        found = set[str]()
        while (sign := self.peek()) != "]":
            if not sign:
                raise self.fault("has a [ that nothing closes")
            low = self.escaped() if self.take() == "\\" else sign
            if self.peek() == "-" and self.pattern[self.at + 1 : self.at + 2] not in ("", "]"):
                self.at += 1
                high = self.escaped() if (end := self.take()) == "\\" else end
                if high < low:
                    raise self.fault(f"has the range {low}-{high}, whose end is before its begin", back=1)
                found |= {chr(code) for code in range(ord(low), ord(high) + 1)}
            else:
                found.add(low)
        self.at += 1
        self.named |= found
        return self.symbols - found if negative else frozenset(found)

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
        return InputError(f"pattern {self.pattern!r} {what}, at character {place + 1}; write \\ in front of a symbol")
