"""Regular expressions that members subscribe by, matched against whole names of topics in time that is bounded.

The syntax and meaning are those of RE2, which Kafka's brokers use: no back references and no looking around, so that
an automaton decides. It walks all alternatives at once and remembers where a set of states goes with a character:
what costs is a new set of states, and how many steps may be spent on those is limited.

Names of topics have 65 characters, a-z, A-Z, 0-9, '.', '_' and '-': a class of characters is a set of bits over them,
and case and categories of Unicode are only those of ASCII. Source: docs/decisions.md, KIP-848.
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from tagwire.errors import Error, KafkaError

MOST_CHARACTERS = 4096
"""The longest regular expression."""

MOST_STATES = 10_000
"""How many states an automaton may have: a{1000} has as many. RE2 has a limit of memory instead."""

MOST_REPEATS = 1000
"""The largest count in braces, as in RE2."""

MOST_FLAGS = 100_000
"""How many characters of flags, and of what quotes nothing, may be read: they make no states, and what repeats is read
again for each time."""

MOST_DEPTH = 100
"""How deep groups may be nested."""

MOST_STEPS = 3_000_000
"""How many steps of single states matching may take in all, beside those that are remembered: about a second."""

MOST_REMEMBERED = 10_000
"""How many sets of states are remembered at a time."""

CHARACTERS: Final = string.ascii_letters + string.digits + "._-"
_BIT: Final = {character: 1 << index for index, character in enumerate(CHARACTERS)}
_ALL: Final = (1 << len(CHARACTERS)) - 1


def _bits(characters: Iterable[str]) -> int:
    found = 0
    for character in characters:
        found |= _BIT.get(character, 0)
    return found


_WORD: Final = _bits(string.ascii_letters + string.digits + "_")
_CLASSES: Final = {"d": _bits(string.digits), "w": _WORD, "s": 0}
_POSIX: Final = {
    "alnum": _bits(string.ascii_letters + string.digits),
    "alpha": _bits(string.ascii_letters),
    "ascii": _ALL,
    "blank": 0,
    "cntrl": 0,
    "digit": _CLASSES["d"],
    "graph": _ALL,
    "lower": _bits(string.ascii_lowercase),
    "print": _ALL,
    "punct": _bits("._-"),
    "space": 0,
    "upper": _bits(string.ascii_uppercase),
    "word": _WORD,
    "xdigit": _bits(string.hexdigits),
}
_ESCAPED: Final = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_SCRIPTS: Final = {
    "Latin": _POSIX["alpha"],
    "Common": _CLASSES["d"] | _bits("._-"),
    "Greek": 0,
    "Cyrillic": 0,
    "Han": 0,
}

_START, _END, _BOUNDARY, _NO_BOUNDARY = "^", "$", "b", "B"


class TopicRegex:
    """A regular expression that is valid. Made by `compiled`."""

    def __init__(self, pattern: str) -> None:
        if len(pattern) > MOST_CHARACTERS:
            raise KafkaError(
                Error.INVALID_REGULAR_EXPRESSION, f"a regular expression of more than {MOST_CHARACTERS} characters"
            )
        self.pattern = pattern
        self._automaton = _Automaton()
        parser = _Parser(pattern, self._automaton)
        self._start, self._accept = parser.parse()

    def matching(self, names: Iterable[str]) -> frozenset[str]:
        """The names that it matches, whole.

        Raises:
            KafkaError: INVALID_REGULAR_EXPRESSION: it takes too many steps.
        """
        automaton = self._automaton
        walk = _Walk(automaton, self.pattern)
        return frozenset(name for name in names if walk.matches(self._start, self._accept, name))


@lru_cache(maxsize=64)
def compiled(pattern: str) -> TopicRegex:
    """A regular expression, ready to match.

    Raises:
        KafkaError: INVALID_REGULAR_EXPRESSION: it is none, or larger than it may be; the text says what is wrong, and
            where.
    """
    return TopicRegex(pattern)


class _Automaton:
    """States and where they lead: by a character of a set to another one, or by none, if a condition holds."""

    def __init__(self) -> None:
        self.by_character: list[tuple[int, int] | None] = []
        self.by_none: list[list[tuple[str, int]]] = []

    def new(self) -> int:
        if len(self.by_none) >= MOST_STATES:
            raise _TooLarge
        self.by_character.append(None)
        self.by_none.append([])
        return len(self.by_none) - 1

    def link(self, source: int, target: int, condition: str = "") -> None:
        self.by_none[source].append((condition, target))


class _TooLarge(Exception):
    pass


class _Walk:
    """One automaton's way through many names. Sets of states that were met are remembered, and where they led."""

    def __init__(self, automaton: _Automaton, pattern: str) -> None:
        self._automaton = automaton
        self._pattern = pattern
        self._left = MOST_STEPS
        self._next: dict[tuple[frozenset[int], str, str], frozenset[int]] = {}

    def matches(self, start: int, accept: int, name: str) -> bool:
        states = frozenset((start,))
        before = ""
        for character in name:
            states = self._step(states, before, character)
            if not states:
                return False
            before = character
        return accept in self._step(states, before, "")

    def _step(self, states: frozenset[int], before: str, character: str) -> frozenset[int]:
        """Where states lead that stand between two characters, by the second one; "" is the end of the name."""
        # What stood before matters to conditions only: where it began, and whether it was part of a word.
        side = "" if not before else "w" if _BIT.get(before, 0) & _WORD else "-"
        key = (states, side, character)
        found = self._next.get(key)
        if found is None:
            reached = self._reached(states, side, character)
            found = reached if not character else self._by_character(reached, character)
            if len(self._next) >= MOST_REMEMBERED:
                self._next.clear()
            self._next[key] = found
        return found

    def _reached(self, states: frozenset[int], side: str, character: str) -> frozenset[int]:
        """States, and those that they lead to by no character."""
        boundary = (side == "w") != bool(_BIT.get(character, 0) & _WORD)
        holds = {
            "": True,
            _START: side == "",
            _END: character == "",
            _BOUNDARY: boundary,
            _NO_BOUNDARY: not boundary,
        }
        reached, waiting = set(states), list(states)
        while waiting:
            links = self._automaton.by_none[waiting.pop()]
            self._spend(1 + len(links))
            for condition, target in links:
                if target not in reached and holds[condition]:
                    reached.add(target)
                    waiting.append(target)
        return frozenset(reached)

    def _by_character(self, states: frozenset[int], character: str) -> frozenset[int]:
        self._spend(len(states))
        bit = _BIT.get(character, 0)
        links = [self._automaton.by_character[state] for state in states]
        return frozenset(link[1] for link in links if link is not None and link[0] & bit)

    def _spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise KafkaError(
                Error.INVALID_REGULAR_EXPRESSION,
                f"{_shown(self._pattern)} takes too long with the topics that there are",
            )


class _Parser:
    """Makes states of a regular expression: each part of it is a pair of states, where it begins and where it ends."""

    def __init__(self, pattern: str, automaton: _Automaton) -> None:
        self._text = pattern
        self._at = 0
        self._depth = 0
        self._automaton = automaton
        self._names: set[str] = set()
        self._ignores_case = False
        self._flags_left = MOST_FLAGS
        self._classes: dict[tuple[int, bool], tuple[int, int]] = {}

    def parse(self) -> tuple[int, int]:
        try:
            whole = self._alternatives()
        except _TooLarge:
            raise self._wrong("it is too large") from None
        if self._at < len(self._text):
            raise self._wrong("a ) without (")
        return whole

    def _wrong(self, problem: str) -> KafkaError:
        where = f"at character {self._at + 1} of {_shown(self._text)}"
        return KafkaError(Error.INVALID_REGULAR_EXPRESSION, f"{problem}, {where}")

    def _peek(self, text: str) -> bool:
        return self._text.startswith(text, self._at)

    def _take(self, text: str) -> bool:
        if self._peek(text):
            self._at += len(text)
            return True
        return False

    def _character(self, what: str) -> str:
        if self._at >= len(self._text):
            raise self._wrong(f"{what} is missing")
        self._at += 1
        return self._text[self._at - 1]

    def _part(self) -> tuple[int, int]:
        return self._automaton.new(), self._automaton.new()

    def _empty(self, condition: str = "") -> tuple[int, int]:
        start, end = self._part()
        self._automaton.link(start, end, condition)
        return start, end

    def _set(self, bits: int) -> tuple[int, int]:
        start, end = self._part()
        self._automaton.by_character[start] = (bits, end)
        return start, end

    def _literal(self, character: str) -> tuple[int, int]:
        return self._set(self._folded(_bits(character)))

    def _folded(self, bits: int) -> int:
        """A set of characters, with those that differ from them by case where that is ignored."""
        if not self._ignores_case:
            return bits
        return bits | _bits(letter.swapcase() for letter in string.ascii_letters if bits & _BIT[letter])

    def _alternatives(self) -> tuple[int, int]:
        ignores_case = self._ignores_case
        start, end = self._part()
        while True:
            first, last = self._sequence()
            self._automaton.link(start, first)
            self._automaton.link(last, end)
            if not self._take("|"):
                break
        self._ignores_case = ignores_case
        return start, end

    def _sequence(self) -> tuple[int, int]:
        start, end = self._empty()
        while True:
            self._pass_nothing()
            if self._at >= len(self._text) or self._peek("|") or self._peek(")"):
                break
            first, last = self._repeated(self._at)
            self._automaton.link(end, first)
            end = last
        return start, end

    def _pass_nothing(self) -> None:
        """Take over what sets flags, and go beyond what quotes nothing: what repeats behind them repeats what is
        before."""
        while True:
            begin, ignores_case = self._at, self._ignores_case
            if self._take("\\Q\\E"):
                self._spend_flags(self._at - begin)
                continue
            if not self._take("(?") or self._peek_name() or self._flags():
                self._at, self._ignores_case = begin, ignores_case
                return

    def _repeated(self, begin: int) -> tuple[int, int]:
        ignores_case = self._ignores_case
        part = self._atom()
        after = self._at
        self._pass_nothing()
        counts = self._counts()
        if counts is None:
            return part
        again = self._at
        part = self._times(part, begin, after, ignores_case, *counts)
        self._at = again
        self._take("?")  # the shortest match or the longest: it is the whole name anyway
        if self._counts() is not None:
            raise self._wrong("what is repeated is repeated already")
        return part

    def _counts(self) -> tuple[int, int | None] | None:
        for sign, counts in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(sign):
                return counts
        if not self._peek("{"):
            return None
        close = self._text.find("}", self._at)
        lowest, comma, highest = self._text[self._at + 1 : max(close, self._at)].partition(",")
        if not (_is_count(lowest) and (not highest or _is_count(highest))):
            return None  # RE2 takes it for what it is, a brace
        low = int(lowest[:6])
        high = (int(highest[:6]) if highest else None) if comma else low
        if low > MOST_REPEATS or (high or 0) > MOST_REPEATS or (high is not None and high < low):
            raise self._wrong(f"counts are 0 to {MOST_REPEATS}, the lower one first")
        self._at = close + 1
        return low, high

    def _times(
        self, part: tuple[int, int], begin: int, after: int, ignores_case: bool, lowest: int, highest: int | None
    ) -> tuple[int, int]:
        """A part several times: as often as it must be there its states are made again, by reading it again."""
        link = self._automaton.link
        start, end = self._empty()
        copies = max(lowest, 1) if highest is None else highest
        parts = [part] if copies else []
        names, depth = set(self._names), self._depth
        for _ in range(copies - 1):
            self._at, self._names = begin, set()
            now, self._ignores_case = self._ignores_case, ignores_case
            parts.append(self._atom())
            self._ignores_case = now
        self._at, self._names, self._depth = after, names, depth
        for number, (first, last) in enumerate(parts):
            before = end
            link(before, first)
            end = last
            if number >= lowest:
                skip = self._automaton.new()
                link(before, skip)
                link(last, skip)
                end = skip
        if highest is None:
            first, last = parts[-1]
            link(last, first)
        return start, end

    def _atom(self) -> tuple[int, int]:
        character = self._character("something")
        if character == "(":
            return self._group()
        if character == "[":
            return self._set(self._bracketed())
        if character == ".":
            return self._set(_ALL)
        if character == "^":
            return self._empty(_START)
        if character == "$":
            return self._empty(_END)
        if character == "\\":
            return self._escape()
        self._at -= 1
        begin = self._at
        if self._counts() is not None:
            self._at = begin
            raise self._wrong(f"there is nothing that {character} repeats")
        self._at += 1
        return self._literal(character)

    def _group(self) -> tuple[int, int]:
        ignores_case = self._ignores_case
        if self._take("?"):
            if self._peek_name():
                self._name()
            else:
                self._flags()
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise self._wrong("groups are nested too deep")
        part = self._alternatives()
        self._depth -= 1
        if not self._take(")"):
            raise self._wrong("a ) is missing")
        self._ignores_case = ignores_case
        return part

    def _peek_name(self) -> bool:
        return self._peek("P<") or self._peek("<")

    def _name(self) -> None:
        self._at = self._text.index("<", self._at) + 1
        close = self._text.find(">", self._at)
        name = self._text[self._at : max(close, self._at)]
        if not (name.isascii() and name.replace("_", "a").isalnum()) or name in self._names:
            raise self._wrong("a group's name is letters, digits and _, and no other's")
        self._names.add(name)
        self._at = close + 1

    def _flags(self) -> bool:
        """Take flags over; whether a group follows, for which they hold, and not the end of this one."""
        on = True
        begin = self._at
        ignores_case = self._ignores_case
        before = ""
        while (flag := self._character("a )")) not in ":)" or before == "-":
            before = flag
            if flag == "i":
                ignores_case = on
            elif flag == "-" and on:
                on = False
            elif flag not in "msU":  # of lines, and of how long a match is: a name has one line, and matches whole
                self._at -= 1
                raise self._wrong("neither flags nor (?: or (?<name>: there is no looking around")
        self._spend_flags(self._at - begin)
        self._ignores_case = ignores_case
        return flag == ":"

    def _spend_flags(self, characters: int) -> None:
        self._flags_left -= characters
        if self._flags_left < 0:
            raise _TooLarge

    def _escape(self) -> tuple[int, int]:
        character = self._character("what \\ escapes")
        if character == "Q":
            close = self._text.find("\\E", self._at)
            quoted = self._text[self._at :] if close < 0 else self._text[self._at : close]
            if len(quoted) > 1 and close >= 0:
                close -= 1  # what may follow repeats the last character alone: it is quoted apart
                self._text = f"{self._text[:close]}\\E\\Q{self._text[close:]}"
                quoted = quoted[:-1]
            self._at = len(self._text) if close < 0 else close + 2
            start, end = self._empty()
            for one in quoted:
                first, last = self._literal(one)
                self._automaton.link(end, first)
                end = last
            return start, end
        conditions = {"A": _START, "z": _END, "b": _BOUNDARY, "B": _NO_BOUNDARY}
        if character in conditions:
            return self._empty(conditions[character])
        bits = self._class(character)
        return self._set(bits) if bits is not None else self._literal(self._escaped(character))

    def _class(self, character: str) -> int | None:
        """What \\d, \\pL and their like stand for; None for what is one character."""
        if character.lower() in _CLASSES:
            bits = _CLASSES[character.lower()]
            return bits if character.islower() else _ALL & ~bits
        if character not in ("p", "P"):
            return None
        name = self._character("a category")
        if name == "{":
            close = self._text.find("}", self._at)
            name = self._text[self._at : max(close, self._at)]
            self._at = max(close, self._at) + 1
        negated = (character == "P") != name.startswith("^")
        name = name.removeprefix("^")
        if name in _SCRIPTS:
            bits = _SCRIPTS[name]
        elif name == "Any":
            bits = _ALL
        elif name[:1] in ("C", "L", "M", "N", "P", "S", "Z") and len(name) <= 2:
            bits = _bits(one for one in CHARACTERS if unicodedata.category(one).startswith(name))
        else:
            raise self._wrong(f"there is no category {name[:20]!r}")
        bits = self._folded(bits)
        return _ALL & ~bits if negated else bits

    def _escaped(self, character: str) -> str:
        if character in _ESCAPED:
            return _ESCAPED[character]
        if character == "x":
            digits = self._text[self._at : self._at + 2]
            if self._take("{"):
                close = self._text.find("}", self._at)
                digits = self._text[self._at : max(close, self._at)]
                self._at = max(close, self._at) + 1
                short = not digits
            else:
                self._at += 2
                short = len(digits) < 2
            if short or len(digits) > 6 or set(digits) - set(string.hexdigits) or int(digits, 16) > 0x10FFFF:
                raise self._wrong("\\x takes two digits of base 16, or more of them in braces")
            return chr(int(digits, 16))
        digits = self._text[self._at : self._at + 2]
        octal = digits[: next((n for n, one in enumerate(digits) if one not in string.octdigits), len(digits))]
        if character == "0" or (character in string.octdigits and octal):  # one digit alone is a back reference
            self._at += len(octal)
            return chr(int(character + octal, 8))
        if character.isalnum() and character.isascii():
            self._at -= 1
            raise self._wrong(f"\\{character} is nothing here: there are no back references")
        return character

    def _bracketed(self) -> int:
        """A class of characters; one that was read is not read again for each time that it repeats."""
        begin = self._at, self._ignores_case
        if begin in self._classes:
            bits, self._at = self._classes[begin]
            return bits
        bits = self._read_bracketed()
        self._classes[begin] = bits, self._at
        return bits

    def _read_bracketed(self) -> int:
        negated = self._take("^")
        bits = 0
        is_first = True
        while is_first or not self._take("]"):
            if self._at >= len(self._text):
                raise self._wrong("a ] is missing")
            is_first = False
            bits |= self._of_bracket()
        return _ALL & ~bits if negated else bits

    def _of_bracket(self) -> int:
        if self._take("[:"):
            close = self._text.find(":]", self._at)
            name = self._text[self._at : max(close, self._at)]
            self._at = max(close, self._at) + 2
            negated = name.startswith("^")
            if name.removeprefix("^") not in _POSIX:
                raise self._wrong(f"there is no class [:{name[:20]}:]")
            bits = self._folded(_POSIX[name.removeprefix("^")])
            return _ALL & ~bits if negated else bits
        lowest = self._character("a ]")
        if lowest == "\\":
            escaped = self._character("what \\ escapes")
            bits_of_class = self._class(escaped)
            if bits_of_class is not None:
                return bits_of_class
            lowest = self._escaped(escaped)
        highest = lowest
        if self._peek("-") and not self._peek("-]"):
            self._at += 1
            highest = self._character("a ]")
            if highest == "\\":
                highest = self._escaped(self._character("what \\ escapes"))
            if highest < lowest:
                raise self._wrong("a range of characters ends before it begins")
        return self._folded(_bits(one for one in CHARACTERS if lowest <= one <= highest))


def _is_count(text: str) -> bool:
    """Whether RE2 takes it for a number in braces: without leading zeros."""
    return text.isascii() and text.isdigit() and (text[0] != "0" or len(text) == 1)


def _shown(pattern: str) -> str:
    return repr(pattern if len(pattern) <= 100 else pattern[:100] + "...")
