"""What releases of Kafka know of its messages: which serve an API, and what came or went between two of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tagwire.cli.terminal import print_json, print_rows

if TYPE_CHECKING:
    from tagwire.rpc import Range, Ranges
    from tagwire.spec import Message, Struct
    from tagwire.spec.versions import Versions

_SERVED = ("request", "response")
_RELEASE = re.compile(r"[0-9]+(\.[0-9]+){1,3}", re.ASCII)


def is_release(text: str) -> bool:
    """Whether `text` is a number such as a release has, known or not."""
    return _RELEASE.fullmatch(text) is not None


def print_messages(kind: str | None, as_json: bool) -> None:
    """Every message of the catalog, by name; `kind`: only those of this type."""
    from tagwire.spec import catalog

    released = _released()
    found = [message for message in map(catalog.message, catalog.names()) if kind in (None, message.type)]
    serving = [released.get(message.api_key, []) if message.type in _SERVED else None for message in found]
    if as_json:
        print_json(
            {
                "message": message.name,
                "type": message.type,
                "api_key": message.api_key,
                "versions": str(message.valid_versions),
                "releases": names,
            }
            for message, names in zip(found, serving)
        )
        return
    rows = [
        (
            message.name,
            message.type,
            "" if message.api_key < 0 else str(message.api_key),
            str(message.valid_versions),
            _span(names),
        )
        for message, names in zip(found, serving)
    ]
    print_rows(("message", "type", "key", "versions", "releases"), rows, numbers=(2,))


def print_release_diff(old: str, new: str, as_json: bool) -> bool:
    """What brokers of `new` serve and those of `old` do not, and the other way round; whether anything went.

    Raises:
        ConfigError: there is no such release.
    """
    from tagwire.cli.versions import note, range_text_of
    from tagwire.rpc import api_name, ranges_of

    before, after = ranges_of(old), ranges_of(new)
    differing = [api for api in sorted({*before, *after}) if before.get(api) != after.get(api)]
    notes = {api: note(before.get(api), after.get(api)) for api in differing}
    fields = [row for api in differing if api in before and api in after for row in _field_changes(api, before, after)]
    gone = any(re.search("drops|goes", said) for said in notes.values())
    if as_json:
        for api, said in notes.items():
            row = {"api": api_name(api), "api_key": api, "old": before.get(api), "new": after.get(api), "note": said}
            print_json([row])
        print_json(fields)
        return gone
    table = [
        (api_name(api), range_text_of(before.get(api)), range_text_of(after.get(api)), said)
        for api, said in notes.items()
    ]
    if table:
        print_rows(("API", old, new, "note"), table)
        print()
    if fields:
        print_rows(("message", "field", "versions", "note"), [tuple(row.values()) for row in fields])
        print()
    counted = "1 API differs" if len(table) == 1 else f"{len(table)} APIs differ"
    print(f"{counted}; {'something' if gone else 'nothing'} that {old} serves is gone in {new}.")
    return gone


def _field_changes(api: int, then: Ranges, now: Ranges) -> Iterator[dict[str, str]]:
    """The fields that only one of two ranges of versions has, as far as the catalog still knows those versions."""
    for message in _messages(api):
        before, after = (dict(_present(message, ranges[api])) for ranges in (then, now))
        for name in sorted({*before} ^ {*after}):
            found = after.get(name) or before[name]
            change = "comes" if name in after else "goes"
            yield {"message": message.name, "field": name, "versions": str(found), "note": change}


def _messages(api: int) -> Iterator[Message]:
    from tagwire.spec import catalog
    from tagwire.spec.api_keys import API_NAMES

    for kind in ("Request", "Response"):
        if catalog.contains(f"{API_NAMES[api]}{kind}"):
            yield catalog.message(f"{API_NAMES[api]}{kind}")


def _present(message: Message, bounds: Range) -> Iterator[tuple[str, Versions]]:
    from tagwire.spec.versions import Versions

    yield from _present_in(message.root, "", Versions(*bounds) & message.valid_versions)


def _present_in(struct: Struct, path: str, within: Versions) -> Iterator[tuple[str, Versions]]:
    for field in struct.fields:
        if field.versions & within:
            yield path + field.name, field.versions
            if field.struct is not None:
                yield from _present_in(field.struct, f"{path}{field.name}.", field.versions & within)


def _released() -> dict[int, list[str]]:
    """{API key: the releases whose brokers serve it, oldest first}."""
    from tagwire.rpc import ranges_of
    from tagwire.spec import releases

    found: dict[int, list[str]] = {}
    for release in releases.names():
        for api in ranges_of(release):
            found.setdefault(api, []).append(release)
    return found


def _span(serving: list[str] | None) -> str:
    from tagwire.spec import releases

    if not serving:
        return "-"
    if serving[-1] == releases.names()[-1]:
        return f"{serving[0]}+"
    return serving[0] if len(serving) == 1 else f"{serving[0]} to {serving[-1]}"
