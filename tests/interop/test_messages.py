"""Kafka's generated classes and the catalog agree: the same bytes and the same JSON, in both directions."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import pytest

from tagwire import messages
from tagwire.spec import Field, Message, catalog

from . import differences
from .conftest import NEW, OLD, Count, Peers
from .exchange import Exchange, classes, exchange, generated

REMOVED = 121
"""Message-versions of the client jar that 4.0 dropped or that went with a renamed message: of 59 messages."""

Exchanges = Callable[[str], Sequence[Exchange]]


@pytest.fixture(scope="session")
def exchanges(peers: Peers) -> Exchanges:
    """Release -> every message and version that it shares with the catalog, each in all variants of value."""

    @cache
    def of(release: str) -> Sequence[Exchange]:
        return exchange(peers(release), old=release == OLD)

    return of


def as_java_writes_it(message: Message, doc: dict[str, Any]) -> dict[str, Any]:
    """Our JSON form without the bytes of records, which Java leaves out."""

    def struct(fields: tuple[Field, ...], of: dict[str, Any]) -> dict[str, Any]:
        return {field.json_name: value(field, of[field.json_name]) for field in fields if field.json_name in of}

    def value(field: Field, of: Any) -> Any:
        if of is None:
            return None
        if field.type.element == "records":
            return ""
        if field.struct is None:
            return of
        inner = field.struct.fields
        return [struct(inner, each) for each in of] if field.type.is_array else struct(inner, of)

    return struct(message.fields, doc)


def has_records(message: Message) -> bool:
    return any(field.type.element == "records" for struct in message.all_structs() for field in struct.fields)


def none_of(wrong: list[str]) -> None:
    """Fails with the first few lines, whole."""
    if wrong:
        pytest.fail("\n".join([f"{len(wrong)} wrong, such as", *wrong[:10]]), pytrace=False)


@pytest.mark.parametrize("release", [OLD, NEW])
def test_java_writes_the_bytes_that_it_read_from_us(exchanges: Exchanges, release: str, count: Count) -> None:
    none_of(
        [
            f"{each}: we write {each.encoded.hex()}, Java {each.written_again}"
            for each in exchanges(release)
            if each.written_again != each.encoded.hex()
        ]
    )
    compared = {(each.message.name, each.version) for each in exchanges(release)}
    names = {name for name, _ in compared}
    count(f"Kafka {release}: {len(names)} messages, {len(compared)} message-versions, {len(exchanges(release))} values")


@pytest.mark.parametrize("release", [OLD, NEW])
def test_we_read_what_java_wrote(exchanges: Exchanges, release: str) -> None:
    wrong = []
    for each in exchanges(release):
        if not each.written_again.startswith("!"):
            read = getattr(messages, each.message.name).decode(bytes.fromhex(each.written_again), each.version)
            if read != each.value:
                wrong.append(f"{each}: {read} is not {each.value}")
    none_of(wrong)


@pytest.mark.parametrize("release", [OLD, NEW])
def test_java_has_our_json_form(exchanges: Exchanges, release: str) -> None:
    wrong = []
    for each in exchanges(release):
        ours = as_java_writes_it(each.message, each.value.to_json(each.version))
        theirs = each.json_form
        if theirs is not None and (theirs.startswith("!") or json.loads(theirs) != ours):
            wrong.append(f"{each}: ours is {json.dumps(ours)}, Java's {theirs}")
    none_of(wrong)


@pytest.mark.parametrize("release", [OLD, NEW])
def test_we_read_javas_json_form(exchanges: Exchanges, release: str) -> None:
    wrong = []
    for each in exchanges(release):
        theirs = each.json_form
        if theirs is None or theirs.startswith("!") or each.raw_tags or has_records(each.message):
            continue
        read = getattr(messages, each.message.name).from_json(json.loads(theirs), each.version)
        if read != each.value:
            wrong.append(f"{each}: {read} is not {each.value}")
    none_of(wrong)


@pytest.mark.parametrize("release", [OLD, NEW])
def test_java_reads_our_json_form(exchanges: Exchanges, release: str) -> None:
    none_of(
        [
            f"{each}: we write {each.encoded.hex()}, Java after reading our JSON {each.written_from_json}"
            for each in exchanges(release)
            if not each.raw_tags and each.written_from_json not in (None, each.encoded.hex())
        ]
    )


@pytest.mark.parametrize("release", [OLD, NEW])
def test_the_catalog_has_every_message_and_version_of_a_release(peers: Peers, release: str) -> None:
    old = release == OLD
    unknown = generated(peers(release)).keys() - set(catalog.names())
    assert unknown == (differences.DROPPED if old else set())
    none_of(
        [
            f"{name}: the catalog has {catalog.message(name).valid_versions}, Kafka {release} has {known}"
            for name, (_, known) in classes(peers(release), old=old).items()
            if not catalog.message(name).valid_versions.covers(known)
        ]
    )


def test_what_only_the_older_client_jar_has_was_compared_with_it(
    exchanges: Exchanges, peers: Peers, count: Count
) -> None:
    newer = dict(classes(peers(NEW), old=False).values())
    only_old = {
        (name, version)
        for name, (java, known) in classes(peers(OLD), old=True).items()
        for version in known
        if java.startswith("org.apache.kafka.common.message.") and (java not in newer or version not in newer[java])
    }
    assert only_old <= {(each.message.name, each.version) for each in exchanges(OLD)}
    assert len(only_old) >= REMOVED
    names = {name for name, _ in only_old}
    count(f"of those, Kafka {NEW} no longer has {len(names)} messages, {len(only_old)} message-versions")


def test_every_message_and_version_of_the_catalog_was_compared_with_a_release(exchanges: Exchanges) -> None:
    compared = {(each.message.name, each.version) for release in (OLD, NEW) for each in exchanges(release)}
    every = {(name, version) for name in catalog.names() for version in catalog.message(name).valid_versions}
    assert every - compared == set()
