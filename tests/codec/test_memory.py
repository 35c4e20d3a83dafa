"""References are kept in balance: nothing is leaked, nothing is freed too early, whichever way a call ends."""

from __future__ import annotations

import gc
import json
import sys
import threading
import tracemalloc
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from tagwire import kernel, message_class, messages
from tagwire.codec.weights import EMPTY_LIST, object_weight
from tagwire.errors import TagwireError
from tagwire.spec import Struct, catalog

Metadata = messages.MetadataResponse
Fetch = messages.FetchResponse


def metadata() -> Any:
    partitions = [
        Metadata.MetadataResponsePartition(partition_index=1000 + i, replica_nodes=[1, 2, 70000]) for i in range(5)
    ]
    topic = Metadata.MetadataResponseTopic(name="täglich", topic_id=UUID(int=9), partitions=partitions)
    return Metadata(topics=[topic], cluster_id="c", unknown_tags={9: b"xyz"})


def fetch() -> Any:
    partition = Fetch.PartitionData(records=b"r" * 100, diverging_epoch=Fetch.EpochEndOffset(epoch=5))
    return Fetch(responses=[Fetch.FetchableTopicResponse(topic="t", partitions=[partition])])


def good() -> None:
    for kind, message, version in ((Metadata, metadata(), 12), (Fetch, fetch(), 12), (Fetch, fetch(), 16)):
        data = message.encode(version) if version < 13 else kind(throttle_time_ms=70000).encode(version)
        kind.decode(data, version).encode(version)
        kind.decode(bytearray(data), version, lenient=True)


def bad_bytes() -> None:
    for kind, message in ((Metadata, metadata()), (Fetch, fetch())):
        data = message.encode(12)
        for at in range(0, len(data), 11):
            for damaged in (data[:at], data[:at] + b"\xff" + data[at + 1 :]):
                for lenient in (False, True):
                    with suppress(TagwireError):
                        kind.decode(damaged, 12, lenient=lenient)


def bad_values() -> None:
    for field in ("throttle_time_ms", "brokers", "cluster_id", "topics"):
        for wrong in (object(), 10**20, "\ud800", [object()], {}, None):
            message = metadata()
            setattr(message, field, wrong)
            with suppress(TagwireError):
                message.encode(12)
            delattr(message, field)
            with suppress(TagwireError):
                message.encode(12)
    message = fetch()
    message.responses[0].partitions[0].records = memoryview(b"abc")[::2]
    message.encode(12)
    message.unknown_tags[5] = "no bytes"
    with suppress(TagwireError):
        message.encode(12)


@pytest.fixture(autouse=True)
def only_what_a_test_makes_is_collected() -> None:
    """Leaves what other tests have left alive out of each collection."""
    gc.collect()
    gc.freeze()


LITTLE = 2000
"""Bytes that may come and go by themselves: what Python keeps of freed lists, a line of the interpreter's own."""


def least(measured: Callable[[], int], enough: int = LITTLE) -> int:
    """The least of a few measurements, none after one that is below `enough`. What is looked for is in every one, what
    another thread of this process allocates is not."""
    sizes: list[int] = []
    while len(sizes) < 5 and not (sizes and sizes[-1] < enough):
        tracemalloc.start()
        try:
            sizes.append(measured())
        finally:
            tracemalloc.stop()
    return min(sizes)


def held_by(kind: Any, data: bytes, version: int) -> int:
    """What a decoded message has allocated."""
    message = kind.decode(data, version)
    taken = tracemalloc.get_traced_memory()[0]
    del message
    return taken


def traced() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.parametrize("work", [good, bad_bytes, bad_values])
def test_nothing_is_leaked_however_a_call_ends(work: Callable[[], None]) -> None:
    for _ in range(3):
        work()

    def grown() -> int:
        before = traced()
        for _ in range(20):
            work()
        return traced() - before

    assert least(grown) < LITTLE


@pytest.mark.parametrize("work", [good, bad_bytes, bad_values])
def test_shared_objects_keep_their_count_of_references(work: Callable[[], None]) -> None:
    """None, True, small ints, the empty string, the zero uuid and the classes are handed out over and over."""
    zero = Metadata.MetadataResponseTopic().topic_id
    shared: list[Any] = [None, True, False, "", b"", 0, -1, 1, 2, zero, Metadata, Metadata.MetadataResponseTopic]
    for _ in range(3):
        work()

    def changes() -> list[int]:
        gc.collect()
        before = [sys.getrefcount(item) for item in shared]
        for _ in range(20):
            work()
        gc.collect()
        return [abs(sys.getrefcount(item) - count) for item, count in zip(shared, before)]

    # What is wrong changes a count in every round; what another thread of this process does with None, in some.
    least_changes = list(map(min, zip(*(changes() for _ in range(5)))))
    assert max(least_changes) < 20, dict(zip(map(str, shared), least_changes))


def test_what_a_message_holds_is_freed_with_it() -> None:
    """Decoded objects are out of the collector's sight: only their counts can free them."""
    data = metadata().encode(12)

    def grown() -> int:
        for _ in range(50):  # Python keeps a few freed lists for itself
            Metadata.decode(data, 12)
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(50):
            Metadata.decode(data, 12)
        return tracemalloc.get_traced_memory()[0] - before

    gc.collect()
    gc.disable()
    try:
        assert least(grown) < LITTLE
    finally:
        gc.enable()


class Owner:
    """What a user may hang into a message: the collector sees it, the message that holds it not."""

    def __init__(self, message: Any) -> None:
        self.message = message


def break_cycles(owners: weakref.WeakSet[Owner]) -> None:
    for owner in list(owners):
        owner.message = None


@pytest.mark.parametrize("hung_into", ["a list of it", "a struct of it", "an attribute of it"])
def test_a_users_own_cycle_leaks_what_is_in_it_and_no_more_and_is_freed_when_broken(hung_into: str) -> None:
    data = metadata().encode(12)
    rounds = 50

    def one(*, cycle: bool) -> Owner:
        message = Metadata.decode(data, 12)
        owner = Owner(message if cycle else None)
        if hung_into == "a list of it":
            message.brokers.append(owner)  # type: ignore[arg-type]
        elif hung_into == "a struct of it":
            message.topics[0].name = owner  # type: ignore[assignment]
        else:
            message.cluster_id = owner  # type: ignore[assignment]
        kept.append(message)
        return owner

    def rise(*, cycle: bool) -> int:
        before = traced()
        alive.update([one(cycle=cycle) for _ in range(rounds)])
        if cycle:
            kept.clear()
        size = traced() - before
        kept.clear()
        assert len(alive) == (rounds if cycle and kernel.compiled else 0)
        return size

    def left() -> int:
        """What is in the cycles and stays when they are let go, beyond what as many messages without a cycle hold."""
        beyond = rise(cycle=True) - held
        break_cycles(alive)
        return beyond

    def left_when_broken() -> int:
        before = traced()
        rise(cycle=True)
        break_cycles(alive)
        size = traced() - before
        assert len(alive) == 0
        return size

    kept: list[Any] = []
    alive: weakref.WeakSet[Owner] = weakref.WeakSet([one(cycle=True)])
    alive.pop().message = None
    kept.clear()
    held = least(lambda: rise(cycle=False))
    assert least(left) <= LITTLE
    assert least(left_when_broken) < LITTLE


def test_parts_outlive_the_message_they_came_from() -> None:
    data = bytearray(fetch().encode(12))
    partition = Fetch.decode(data, 12).responses[0].partitions[0]
    records, epoch = partition.records, partition.diverging_epoch
    del partition, data
    gc.collect()
    assert bytes(records) == b"r" * 100
    assert epoch == Fetch.EpochEndOffset(epoch=5)


def test_a_decoded_message_takes_new_values_like_any_other() -> None:
    message = Metadata.decode(metadata().encode(12), 12)
    for i in range(1000):
        message.topics.append(Metadata.MetadataResponseTopic(name=f"t{i}"))
        message.cluster_id = f"c{i}"
    del message.topics[:500]
    gc.collect()
    assert Metadata.decode(message.encode(12), 12) == message


def test_threads_share_classes_and_programs() -> None:
    """A dozen threads ask for a class that nobody built before, and use it from the first call on."""
    field = {"name": "Number", "type": "int32", "versions": "0+"}
    rows = {"name": "Rows", "type": "[]Row", "versions": "0+", "fields": [field]}
    spec = {"type": "data", "name": "Threads", "validVersions": "0-2", "flexibleVersions": "1+", "fields": [rows]}
    text = json.dumps(spec)
    start = threading.Barrier(12)
    kinds: list[Any] = []
    wrong: list[Any] = []

    def work(number: int) -> None:
        start.wait()
        kind: Any = message_class(text)
        kinds.append(kind)
        for version in (0, 1, 2) * 20:
            message = kind(rows=[kind.Row(number=number)] * 3)
            if kind.decode(message.encode(version), version) != message:
                wrong.append((number, version))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(kinds) == 12
    assert set(kinds) == {message_class(text)}
    assert wrong == []


def told(struct: Struct, version: int, classes: Any) -> int:
    """What decoding counts for an object whose arrays are empty: the object, those arrays, the structs in it."""
    total = object_weight(struct, version, classes)
    for field in struct.fields:
        if version in field.versions and not field.is_tagged(version):
            if field.type.is_array:
                total += EMPTY_LIST
            elif field.struct is not None:
                total += told(field.struct, version, classes)
    return total


def test_no_struct_of_the_catalog_takes_more_memory_than_decoding_counts() -> None:
    """Every array of structs that a message holds, in its newest version, with 50 elements of defaults."""
    measured = 0
    heavier = []
    for name in catalog.names():
        kind: Any = getattr(messages, name)
        version = kind.valid_versions.highest
        for field in kind.spec.fields:
            if not field.type.is_array or field.struct is None or version not in field.versions:
                continue
            elements = [getattr(kind, field.struct.name)() for _ in range(50)]
            try:
                data = kind(**{field.attribute: elements}).encode(version)
            except TagwireError:  # records that may not be null
                continue
            kind.decode(data, version)
            classes = {struct.name: getattr(kind, struct.name, kind) for struct in kind.spec.all_structs()}
            counted = 50 * told(field.struct, version, classes) + told(kind.spec.root, version, classes)
            measured += 1
            taken = least(partial(held_by, kind, data, version), enough=counted + 1024)
            if taken > counted + 1024:
                heavier.append((name, field.name, taken, counted))
    assert heavier == []
    assert measured > 150


def test_structs_nested_without_bound_are_freed_without_bound() -> None:
    """Nothing keeps a user from hanging structs into structs; freeing them must not eat the stack."""
    alive: list[None] = []

    class Witness:
        def __del__(self) -> None:
            alive.pop()

    kind = messages.FetchResponse.PartitionData
    alive.append(None)
    outer = kind(diverging_epoch=Witness())
    for _ in range(300_000):
        outer = kind(diverging_epoch=outer)
    assert alive
    del outer
    assert not alive
