"""From a certificate's name to a principal, by rules: Kafka's ssl.principal.mapping.rules.

    RULE:^CN=(.*?),OU=Services.*$/$1/L, RULE:^UID=(.*?),.*$/$1/, DEFAULT

The first rule whose expression matches the whole name counts; L and U change the case of what it gives, DEFAULT gives
the name as it is. Source: KIP-371; Kafka's SslPrincipalMapper.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tagwire.broker.network.bounded_regex import BoundedRegex, Groups, Steps, TooLongError
from tagwire.errors import AuthenticationError, ConfigError

DEFAULT_RULES: Final = "DEFAULT"

MOST_CHARACTERS: Final = 10_000
"""Of all rules."""

_RULE: Final = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_SPLITTER: Final = re.compile(rf"\s*({_RULE})\s*(?:,\s*|$)", re.ASCII)
_PARSER: Final = re.compile(r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)")


@dataclass(frozen=True, slots=True)
class _Rule:
    """`pattern` None gives the name as it is."""

    pattern: BoundedRegex | None
    replacement: str = ""
    case: str = ""

    def applied(self, name: str, steps: Steps) -> str | None:
        """What it gives for a name that it is for. Raises TooLongError."""
        if self.pattern is None:
            return name
        if self.pattern.match(name, steps, whole=True) is None:
            return None
        given = self._replaced(self.pattern, name, steps)
        return given.lower() if self.case == "L" else given.upper() if self.case == "U" else given

    def _replaced(self, pattern: BoundedRegex, name: str, steps: Steps) -> str:
        """The name with every match replaced, as Java's replaceAll does it."""
        parts: list[str] = []
        at = copied = 0
        while at <= len(name):
            found = pattern.match(name, steps, at)
            if found is None or found[0] is None:
                at += 1
                continue
            begin, end = found[0]
            parts += [name[copied:begin], _filled(self.replacement, name, found)]
            copied = end
            at = end if end > begin else end + 1
        return "".join((*parts, name[copied:]))


class PrincipalMapping:
    """Rules.

    Args:
        rules: as in Kafka.

    Raises:
        ConfigError: they are none; the text says which rule.
    """

    def __init__(self, rules: str = DEFAULT_RULES) -> None:
        if not isinstance(rules, str) or len(rules) > MOST_CHARACTERS:
            raise ConfigError(f"tls principal_mapping_rules: needs a text of at most {MOST_CHARACTERS} characters")
        told = [found.group(1).strip() for found in _SPLITTER.finditer(rules.strip())]
        self._rules = [_rule(each) for each in told if each]

    def principal(self, name: str) -> str:
        """The principal's name for a certificate's.

        Raises:
            AuthenticationError: no rule is for it, or it is too long for one.
        """
        steps = Steps()
        try:
            given = (rule.applied(name, steps) for rule in self._rules)
            found = next((each for each in given if each is not None), None)
        except TooLongError:
            raise AuthenticationError(
                f"a rule takes too long with the certificate's name of {len(name)} characters"
            ) from None
        if not found:
            raise AuthenticationError("no rule of ssl.principal.mapping.rules is for the certificate's name")
        return found


def _rule(told: str) -> _Rule:
    found = _PARSER.fullmatch(told)
    if found is None:
        allowed = "RULE:pattern/replacement/[LU] or DEFAULT"
        raise ConfigError(f"tls principal_mapping_rules: {told[:100]!r} is not {allowed}")
    is_default, pattern, replacement, case = found.groups()
    if is_default:
        return _Rule(None)
    try:
        return _Rule(BoundedRegex(pattern), replacement, case)
    except ValueError as error:
        raise ConfigError(f"tls principal_mapping_rules: {pattern[:100]!r}: {error}") from None


def _filled(replacement: str, name: str, groups: Groups) -> str:
    """A replacement with its references to groups filled in; what refers to none stands for itself."""
    parts: list[str] = []
    at = 0
    while at < len(replacement):
        character = replacement[at]
        if character == "\\" and at + 1 < len(replacement):
            parts.append(replacement[at + 1])
            at += 2
            continue
        number, end = -1, at + 1
        if character == "$":
            while end < len(replacement) and replacement[end] in "0123456789":
                further = max(number, 0) * 10 + int(replacement[end])
                if further >= len(groups):
                    break
                number, end = further, end + 1
        if number >= 0:
            where = groups[number]
            parts.append(name[slice(*where)] if where is not None else "")
        else:
            parts.append(character)
        at = end
    return "".join(parts)
