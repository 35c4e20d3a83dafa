"""Every message of the catalog at every version of Kafka's trunk, as Kafka's own generated code wrote it.

tests/vectors/messages.jsonl.gz: one line per message, version and variant (default, full, nulls), with the document
in Kafka's JSON form and the bytes. Two lines carry an error instead of bytes.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tagwire import kernel, message_class, messages
from tagwire.codec import MessageObject
from tagwire.errors import DecodeError, EncodeError
from tagwire.spec import Versions, catalog

VECTORS = Path(__file__).parents[1] / "vectors"
VARIANTS = ("default", "full", "nulls")


def lines() -> list[dict[str, Any]]:
    with gzip.open(VECTORS / "messages.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


LINES = lines()
WRITTEN = [line for line in LINES if "hex" in line]
REFUSED = [line for line in LINES if "error" in line]


def class_of(line: dict[str, Any]) -> type[MessageObject]:
    if line["module"] == "clients-test":
        return message_class(VECTORS / "specs" / f"{line['message']}.json")
    return getattr(messages, line["message"])  # type: ignore[no-any-return]


def title(line: dict[str, Any]) -> str:
    return f"{line['message']} v{line['version']} {line['variant']}"


def test_the_vectors_are_all_there() -> None:
    assert len(LINES) == 2271
    assert len({line["message"] for line in LINES}) == 283
    assert [sum(line["variant"] == variant for line in LINES) for variant in VARIANTS] == [757, 757, 757]
    assert (len(WRITTEN), len(REFUSED)) == (2269, 2)


def test_only_retired_apis_and_the_streams_subscription_have_no_vectors() -> None:
    """LeaderAndIsr, StopReplica, UpdateMetadata and ControlledShutdown left Kafka in 4.0."""
    missing = sorted(set(catalog.names()) - {line["message"] for line in LINES})
    retired = ("ControlledShutdown", "LeaderAndIsr", "StopReplica", "UpdateMetadata")
    assert [name for name in missing if not name.startswith(retired)] == ["SubscriptionInfoData"]


def test_every_document_is_written_as_kafka_writes_it() -> None:
    different = [
        title(line)
        for line in WRITTEN
        if class_of(line).from_json(line["doc"], line["version"]).encode(line["version"]).hex() != line["hex"]
    ]
    assert different == []


def test_every_message_is_read_and_written_again_byte_for_byte() -> None:
    different = []
    for line in WRITTEN:
        data = bytes.fromhex(line["hex"])
        if class_of(line).decode(data, line["version"]).encode(line["version"]) != data:
            different.append(title(line))
    assert different == []


def test_every_message_read_equals_its_document() -> None:
    different = []
    for line in WRITTEN:
        kind, version = class_of(line), line["version"]
        if kind.decode(bytes.fromhex(line["hex"]), version) != kind.from_json(line["doc"], version):
            different.append(title(line))
    assert different == []


def test_lenient_reading_of_good_bytes_gives_the_same_message() -> None:
    different = []
    for line in WRITTEN:
        kind, version, data = class_of(line), line["version"], bytes.fromhex(line["hex"])
        if kind.decode(data, version, lenient=True) != kind.decode(data, version):
            different.append(title(line))
    assert different == []


def test_every_message_cut_short_anywhere_is_refused() -> None:
    """At every byte of every vector; uncompiled, which is slow, at one in 50 of them."""
    read = []
    for line in WRITTEN:
        kind, version, data = class_of(line), line["version"], bytes.fromhex(line["hex"])
        for size in range(len(line["message"]) % 50, len(data), 50) if not kernel.compiled else range(len(data)):
            for lenient in (False, True):
                try:
                    message = kind.decode(data[:size], version, lenient=lenient)
                except DecodeError:
                    continue
                read.append((title(line), size, lenient, message))
    assert read == []


def test_the_json_form_of_every_message_survives_json_text() -> None:
    different = []
    for line in WRITTEN:
        kind, version = class_of(line), line["version"]
        message = kind.decode(bytes.fromhex(line["hex"]), version)
        text = json.dumps(message.to_json(version))
        if kind.from_json(json.loads(text), version) != message:
            different.append(title(line))
    assert different == []


def test_the_json_form_says_what_kafkas_documents_say() -> None:
    different = []
    for line in WRITTEN:
        ours = class_of(line).decode(bytes.fromhex(line["hex"]), line["version"]).to_json(line["version"])
        if not says(line["doc"], ours):
            different.append(title(line))
    assert different == []


def says(theirs: Any, ours: Any) -> bool:
    """Whether two documents agree where both speak: either may leave out what is at its default."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return all(says(theirs[key], ours[key]) for key in theirs.keys() & ours.keys())
    if isinstance(theirs, list) and isinstance(ours, list):
        return len(theirs) == len(ours) and all(says(*pair) for pair in zip(theirs, ours))
    return type(theirs) is type(ours) and bool(theirs == ours)


@pytest.mark.parametrize("line", REFUSED, ids=title)
def test_a_null_that_kafka_cannot_write_is_refused(line: dict[str, Any]) -> None:
    kind = class_of(line)
    with pytest.raises(EncodeError, match=r"AllTypeMessage v[01], my_(compact_)?records: cannot be null"):
        kind().encode(line["version"])


def test_versions_that_kafka_dropped_are_still_written_and_read() -> None:
    """No vectors exist for them: the catalog's lowest versions are below those of Kafka's trunk."""
    newest = {line["message"]: line["version"] for line in reversed(LINES)}
    dropped = 0
    for name in catalog.names():
        kind = getattr(messages, name)
        first = min((line["version"] for line in LINES if line["message"] == name), default=newest.get(name))
        for version in Versions(0, kind.valid_versions.highest if first is None else first - 1):
            if version in kind.valid_versions and needs_no_value(kind, version):
                dropped += 1
                assert kind.decode(kind().encode(version), version) == kind(), (name, version)
    assert dropped > 100


def needs_no_value(kind: type[MessageObject], version: int) -> bool:
    """Whether a message of defaults can be written: records may not be null everywhere."""
    return all(
        field.type.element != "records" or version in field.nullable_versions
        for field in kind.spec.fields
        if version in field.versions
    )
