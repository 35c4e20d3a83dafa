"""What `tagwire spec derive` writes and says."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tagwire.cli.spec_files import spec_files
from tagwire.cli.terminal import printable
from tagwire.errors import ConfigError, SpecError

if TYPE_CHECKING:
    from tagwire.spec import Finding, Message
    from tagwire.spec.derivation import Derived, Dialect, NewField

_FIELD = re.compile(
    r"(?P<name>[A-Za-z][A-Za-z0-9]*):(?P<type>(?:\[\])?[A-Za-z0-9]+)(?::(?P<tag>0x[0-9a-fA-F]{1,8}|[0-9]{1,9}))?"
)
_COMMENT = re.compile(r"\s+|//[^\n]*|/\*.*?\*/", re.DOTALL)


@dataclass
class _Made:
    """A spec file, and what became of it."""

    name: str
    text: str
    old: Message
    derived: Derived
    new: Message

    @property
    def is_changed(self) -> bool:
        return not self.derived.reason


def print_derived(
    directory: Path, to: Path, dialect: Dialect, fields: Sequence[str], *, every: bool, force: bool, as_json: bool
) -> bool:
    """Writes the derived specs and says what became of each; whether they would break somebody, and nothing is written.

    Raises:
        ConfigError: there is no such directory, a field is none, or files would be written over.
        SpecError: a spec breaks the language, or cannot take a field.
    """
    from tagwire.spec import diff
    from tagwire.spec.module import contradictions

    made = _derived(directory, dialect, [_field(text) for text in fields], every)
    problems = set(contradictions({one.name: one.new for one in made}))
    problems -= set(contradictions({one.name: one.old for one in made}))
    findings = [finding for one in made for finding in diff(one.old, one.new)]
    broken = [finding for finding in findings if not finding.compatible]
    if problems or broken:
        for line in [*sorted(problems), *map(str, broken)]:
            print(json.dumps({"problem": line}) if as_json else printable(line))
        return True
    _write(made, to, force)
    for one in made:
        _say(one, to, [finding for finding in findings if finding.message == one.new.name], as_json)
    if not as_json:
        _summary(made)
    return False


def _derived(directory: Path, dialect: Dialect, fields: list[NewField], every: bool) -> list[_Made]:
    from tagwire.spec.derivation import common_tag, derived
    from tagwire.spec.json_text import parse_json
    from tagwire.spec.parse import parse
    from tagwire.spec.spec_text import spec_text

    if not directory.is_dir():
        raise ConfigError(f"{directory}: there is no such directory")
    texts = {file.name: _text(file) for file in spec_files(directory)}
    messages = {name: parse(text, name) for name, text in texts.items()}
    tags = [field.tag for field in fields if field.tag is not None]
    for number, field in enumerate(fields):
        if field.tag is None:
            tags.append(common_tag(messages.values(), tags))
            fields[number] = replace(field, tag=tags[-1])
    # A version after an unstable one would have that served by default: both messages of its API keep what they have.
    unstable = {message.api_key for message in messages.values() if message.latest_version_unstable}
    made = []
    for name, text in texts.items():
        message = messages[name]
        is_next = every and not (message.type in ("request", "response") and message.api_key in unstable)
        what = derived(message, parse_json(text), dialect, fields, every=is_next)
        new = text if what.reason else _leading_comments(text) + spec_text(what.document)
        made.append(_Made(name, new, message, what, parse(new, name)))
    return made


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise SpecError(f"{file}: cannot be read: {error}") from error


def _leading_comments(text: str) -> str:
    """What stands before a spec's object, such as its licence; comments inside are not kept."""
    at = 0
    while (found := _COMMENT.match(text, at)) is not None:
        at = found.end()
    return text[:at]


def _field(text: str) -> NewField:
    from tagwire.spec.derivation import NewField
    from tagwire.spec.model import PRIMITIVES

    found = _FIELD.fullmatch(text)
    if found is None or found["type"].removeprefix("[]") not in PRIMITIVES:
        said = "is no NAME:TYPE[:TAG] of a primitive type or an array of them, such as TraceId:string or Hops:[]int32:7"
        raise typer.BadParameter(f"{text!r} {said}", param_hint="'--field'")
    tag = None if found["tag"] is None else int(found["tag"], 0)
    return NewField(found["name"], found["type"], tag)


def _write(made: list[_Made], to: Path, force: bool) -> None:
    there = [one.name for one in made if (to / one.name).exists()]
    if there and not force:
        raise ConfigError(
            f"{to}: {', '.join(there[:3])}{', ...' if len(there) > 3 else ''} is there: --force writes over"
        )
    try:
        to.mkdir(parents=True, exist_ok=True)
        for one in made:
            (to / one.name).write_text(one.text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{to}: cannot be written: {error}") from error


def _say(one: _Made, to: Path, findings: list[Finding], as_json: bool) -> None:
    derived = one.derived
    if as_json:
        row: dict[str, Any] = {
            "message": one.new.name,
            "file": str(to / one.name),
            "versions": str(one.new.valid_versions),
            "new_version": derived.version,
            "dialect": derived.dialect,
            "unchanged": derived.reason or None,
            "findings": [str(finding) for finding in findings],
        }
        print(json.dumps(row))
        return
    if derived.reason:
        said = f"unchanged: {derived.reason}"
    elif derived.version is None:
        said = f"versions {one.new.valid_versions}, {derived.dialect} fields"
    else:
        said = f"versions {one.new.valid_versions}, {derived.dialect} fields in {derived.version}"
    print(printable(f"{one.new.name}: {said}"))
    for finding in findings:
        print(printable(f"  {finding}"))


def _summary(made: list[_Made]) -> None:
    new = sum(one.derived.version is not None for one in made)
    changed = sum(one.is_changed for one in made)
    print(f"{len(made)} specs written: {changed} changed, {new} with a new version; nothing breaks.")
