"""Regular expressions with groups whose matching takes bounded time, whatever the text.

What Java and Python have in common and mapping rules use: characters, sets, groups, alternatives, repeats, greedy or
not, and anchors. The match is the one that backtracking finds, but no state is tried twice at a place, so that steps
grow with expression times text, as in RE2's BitState, and they are counted. Backreferences, lookaround and flags are
refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

MOST_CHARACTERS: Final = 1000
MOST_STATES: Final = 2000
MOST_STEPS: Final = 200_000
"""Of one text: a fraction of a second, for which others wait."""

MOST_REPEATS: Final = 1000

Groups = Sequence[tuple[int, int] | None]
"""Where the match stands in the text, then each group."""

_Takes = Callable[[str], object]
_QUANTIFIER: Final = re.compile(r"([*+?]|\{(\d{1,4})(,(\d{1,4})?)?\})([?+]?)")
_ATOM: Final = re.compile(
    r"\[\^?\]?(?:\\.|[^\]\\])*\]|\\[dDwWsS]|\\[^a-zA-Z0-9]|\\[tnrf]|[^\\()\[\]{}|*+?^$]", re.DOTALL
)

# In Java a set within a set is their union, and && their intersection.
_COMBINED: Final = re.compile(r"(?:\\.|[^\\\[&]|&(?!&))*(?:\[|&&)", re.DOTALL)
_ANY: Final = r"[^\n\r\x85\u2028\u2029]"
"""What a dot takes in Java: all but the ends of lines."""

_Noted = tuple[int, int, "_Noted"] | None
"""What was noted at which place, and all that was before."""


class TooLongError(Exception):
    """A text takes an expression more steps than there may be."""


@dataclass(slots=True)
class Steps:
    """How many steps are left for one text."""

    left: int = MOST_STEPS

    def take(self) -> None:
        """Take one. Raises TooLongError."""
        self.left -= 1
        if self.left < 0:
            raise TooLongError


@dataclass(slots=True)
class _State:
    """What to do at a place of a text: take a character, note the place, look where it is, or try several states."""

    takes: _Takes | None = None
    notes: int | None = None
    anchor: str = ""
    following: tuple[int, ...] = ()


class BoundedRegex:
    """An expression.

    Raises:
        ValueError: it is none, or has what is refused.

    Attributes:
        groups: how many it has.
    """

    def __init__(self, pattern: str) -> None:
        if len(pattern) > MOST_CHARACTERS:
            raise ValueError(f"a regular expression of more than {MOST_CHARACTERS} characters")
        try:
            re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise ValueError(f"no regular expression: {error}") from None
        self._pattern = pattern
        self._at = 0
        self._states: list[_State] = [_State(notes=-1)]  # the end of a match
        self.groups = 0
        try:
            # Built from the end: each part is made with the state that follows it.
            tree = self._alternatives()
            if self._at < len(pattern):
                raise self._refused()
            self._start = tree(0)
        except RecursionError:
            raise ValueError("a regular expression whose groups are nested too deep") from None

    def match(self, text: str, steps: Steps, begin: int = 0, *, whole: bool = False) -> Groups | None:
        """The match that begins at a place; `whole`: that ends with the text, too. None for none.

        Raises:
            TooLongError: it takes too many steps.
        """
        tried: set[tuple[int, int]] = set()
        # What is left to try, the last first: a state, a place, and what was noted until then.
        waiting: list[tuple[int, int, _Noted]] = [(self._start, begin, None)]
        while waiting:
            steps.take()
            number, at, noted = waiting.pop()
            if (number, at) in tried:
                continue
            tried.add((number, at))
            state = self._states[number]
            if state.notes == -1:
                if not whole or at == len(text):
                    return self._found(begin, at, noted)
            elif state.takes is not None:
                if at < len(text) and state.takes(text[at]):
                    waiting.append((state.following[0], at + 1, noted))
            elif state.anchor:
                if at == (0 if state.anchor == "^" else len(text)):
                    waiting.append((state.following[0], at, noted))
            else:
                if state.notes is not None:
                    noted = state.notes, at, noted
                waiting.extend((following, at, noted) for following in reversed(state.following))
        return None

    def _found(self, begin: int, end: int, noted: _Noted) -> Groups:
        latest: dict[int, int] = {}
        while noted is not None:
            what, where, noted = noted
            latest.setdefault(what, where)
        groups: list[tuple[int, int] | None] = [(begin, end)]
        for group in range(1, self.groups + 1):
            first, last = latest.get(2 * group), latest.get(2 * group + 1)
            groups.append((first, last) if first is not None and last is not None else None)
        return groups

    def _refused(self) -> ValueError:
        return ValueError(f"a regular expression with what is not served here, at character {self._at + 1}")

    def _new(self, state: _State) -> int:
        if len(self._states) >= MOST_STATES:
            raise ValueError(f"a regular expression of more than {MOST_STATES} states")
        self._states.append(state)
        return len(self._states) - 1

    def _alternatives(self) -> _Part:
        parts = [self._sequence()]
        while self._pattern.startswith("|", self._at):
            self._at += 1
            parts.append(self._sequence())
        if len(parts) == 1:
            return parts[0]
        return lambda following: self._new(_State(following=tuple(part(following) for part in parts)))

    def _sequence(self) -> _Part:
        parts: list[_Part] = []
        while self._at < len(self._pattern) and self._pattern[self._at] not in "|)":
            parts.append(self._repeated(self._single()))

        def build(following: int) -> int:
            for part in reversed(parts):
                following = part(following)
            return following

        return build

    def _single(self) -> _Part:
        character = self._pattern[self._at]
        if character in "^$":
            self._at += 1
            return lambda following: self._new(_State(anchor=character, following=(following,)))
        if character == "(":
            return self._group()
        atom = _ATOM.match(self._pattern, self._at)
        if atom is None:
            raise self._refused()
        text = atom.group()
        if text[0] == "[" and _COMBINED.match(text, 1):
            raise self._refused()
        self._at = atom.end()
        takes: _Takes = re.compile(_ANY if text == "." else text, re.ASCII).fullmatch  # \d, \w and \s are ASCII in Java
        return lambda following: self._new(_State(takes=takes, following=(following,)))

    def _group(self) -> _Part:
        self._at += 1
        number = 0
        if self._pattern.startswith("?:", self._at):
            self._at += 2
        elif self._pattern.startswith("?", self._at):
            raise self._refused()
        else:
            self.groups += 1
            number = self.groups
        inner = self._alternatives()
        if not self._pattern.startswith(")", self._at):
            raise self._refused()
        self._at += 1
        if not number:
            return inner

        def build(following: int) -> int:
            end = self._new(_State(notes=2 * number + 1, following=(following,)))
            return self._new(_State(notes=2 * number, following=(inner(end),)))

        return build

    def _repeated(self, part: _Part) -> _Part:
        found = _QUANTIFIER.match(self._pattern, self._at)
        if found is None:
            return part
        sign, least, comma, most, how = found.groups()
        if how == "+":  # possessive, which never gives back
            raise self._refused()
        self._at = found.end()
        low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(sign, (0, None))
        if least is not None:
            low = int(least)
            high = (int(most) if most else None) if comma else low
        if low > MOST_REPEATS or (high or 0) > MOST_REPEATS or (high is not None and high < low):
            raise self._refused()
        return self._times(part, low, high, is_lazy=how == "?")

    def _times(self, part: _Part, low: int, high: int | None, *, is_lazy: bool) -> _Part:
        def choice(again: int, following: int) -> tuple[int, int]:
            return (following, again) if is_lazy else (again, following)

        def build(following: int) -> int:
            if high is None:
                loop = self._new(_State())
                self._states[loop].following = choice(part(loop), following)
                start = loop
            else:
                start = following
                for _ in range(high - low):
                    start = self._new(_State(following=choice(part(start), following)))
            for _ in range(low):
                start = part(start)
            return start

        return build


_Part = Callable[[int], int]
"""Makes the states of a part, given the one that follows it, and gives the first."""
