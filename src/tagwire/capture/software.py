"""Published clients other than Kafka's own: how they are told from each other, and which of their releases work.

Of the tables beside this file, tried.json is written by tests/interop/try_clients.py, which runs each release against
real brokers: produce, consume in a group, commit, and all but librdkafka create a topic. seen.json is written by
tests/interop/see_clients.py, which does the same on the embedded broker, and says which versions they used.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Final

from tagwire.capture.census import Client
from tagwire.spec import releases

_TABLE: Final = Path(__file__).with_name("tried.json")
_SEEN: Final = Path(__file__).with_name("seen.json")
_NAMES: Final = {"kafka-python": "kafka-python", "kgo": "franz-go", "librdkafka": "librdkafka", "sarama": "sarama"}
"""{the name that a client tells: as people call it}."""

_IDS: Final = tuple(
    (re.compile(pattern), software)
    for pattern, software in (
        ("kafka-node-client", "kafka-node"),
        ("kafkajs", "kafkajs"),
        ("rdkafka", "librdkafka"),
        ("sarama", "sarama"),
        (r".* \(github\.com/segmentio/kafka-go\)", "kafka-go"),
        (r"kafka-python-producer-\d+", "kafka-python"),
        (r"aiokafka-producer-\d+", "aiokafka"),
    )
)
"""The client ids that a client takes where it is given none, without its version, and how people call it. The fifth
begins with the program's name and the host's."""

_TOLD: Final = frozenset({"sarama"})
"""Software that speaks the versions of a release that it is told, whatever its own."""

_ID: Final = re.compile(r"(kafka-python|aiokafka)-(\d[\d.]*)(?:-|$)")
_BINDING: Final = re.compile(r".*rdkafka-v?(\d[\d.]*)(?:-.*)?")
"""Bindings tell librdkafka's version after their own, such as 2.16.1-rdkafka-2.16.0; Karafka's with a v before it, and
one that is built of a release candidate ends with -RC1."""
_MAX_VERSION: Final = 100
"""Characters that are looked at. A client may say what it likes of itself, and Python makes no number of thousands of
digits."""


def software_of(client: Client) -> tuple[str, str]:
    """Which software it is, and its version: as it tells, or else by the client id that it has by default; "" for what
    neither tells. A binding of librdkafka is taken as that."""
    name, version = client.software_name, client.software_version
    if binding := _BINDING.fullmatch(version[:_MAX_VERSION]):
        return "librdkafka", binding[1]
    if name:
        return _NAMES.get(name, name), version.removeprefix("v")
    client_id = client.client_id or ""
    if by_id := _ID.match(client_id):
        return by_id[1], by_id[2].rstrip(".")
    return next((software for pattern, software in _IDS if pattern.fullmatch(client_id)), ""), ""


def oldest_that_works(software: str, version: str, target: str) -> str | None:
    """The oldest release of a software, newer than `version`, of which all that were tried from there on work with a
    release of Kafka; None where none is known.

    Args:
        version: "" where it is not known.
    """
    oldest = _oldest(software, target)
    if oldest is None or _number(version) >= _number(oldest):
        return None
    return oldest


def works_with(software: str, version: str, target: str) -> bool | None:
    """Whether a release of a software works with a release of Kafka: from the oldest on that was tried and works, and
    not up to the newest that breaks; None between them, and where nothing was tried or the version is no number."""
    if software in _TOLD or not _number(version):
        return None
    oldest = _oldest(software, target)
    if oldest is not None and _number(version) >= _number(oldest):
        return True
    broken = [_number(tried) for tried, works in _table().get(software, {}).items() if _works(works, target) is False]
    return False if broken and _number(version) <= max(broken) else None


@cache
def seen() -> dict[str, dict[str, dict[str, dict[str, list[int]]]]]:
    """Which versions clients were seen to use: {software: {version: {release of the broker: {API: versions}}}}."""
    found: dict[str, dict[str, dict[str, dict[str, list[int]]]]] = json.loads(_SEEN.read_text(encoding="utf-8"))
    return found


def _oldest(software: str, target: str) -> str | None:
    oldest = None
    for tried, works in reversed(_table().get(software, {}).items()):
        if not _works(works, target):
            break
        oldest = tried
    return oldest


def _works(works: dict[str, bool], target: str) -> bool | None:
    """Whether it worked on the target's row of the table of releases; where it was not tried on that, on those before
    and after it, which must agree."""
    names = releases.names()
    rows = {names.index(releases.row_of(release)): worked for release, worked in works.items()}
    at = names.index(releases.row_of(target))
    if at in rows:
        return rows[at]
    before, after = [row for row in rows if row < at], [row for row in rows if row > at]
    agree = before and after and rows[max(before)] is rows[min(after)]
    return rows[max(before)] if agree else None


def _number(version: str) -> tuple[int, ...]:
    """Empty for what is built from no release: "unknown", "(devel)", digits that are none's."""
    if len(version) > _MAX_VERSION or not version[:1].isdigit():
        return ()
    return tuple(int(part) for part in re.findall(r"\d+", version))


@cache
def _table() -> dict[str, dict[str, dict[str, bool]]]:
    """{software: {version, oldest first: {release of Kafka: whether it works}}}."""
    table: dict[str, dict[str, dict[str, bool]]] = json.loads(_TABLE.read_text(encoding="utf-8"))
    return table
