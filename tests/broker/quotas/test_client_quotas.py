"""Client quotas over the wire: set, described, removed, stored; and which of them counts."""

from __future__ import annotations

import asyncio
import errno
from concurrent.futures import ThreadPoolExecutor

import pytest

from tagwire import messages
from tagwire.broker import Broker, Cluster
from tagwire.broker.quotas.stored import ClientQuotas, address_text, entity_of
from tagwire.broker.storage.files import Files
from tagwire.errors import Error, StorageError

FILE = "tagwire-client-quotas.json"
RATE = "producer_byte_rate"


def alter(wire, *entries, validate_only=False, version=1):
    """[(error)] of entries: {type: name}, {quota: value or None}."""
    kind = messages.AlterClientQuotasRequest
    requested = [
        kind.EntryData(
            entity=[kind.EntityData(entity_type=key, entity_name=name) for key, name in entity.items()],
            ops=[kind.OpData(key=key, value=value or 0.0, remove=value is None) for key, value in ops],
        )
        for entity, ops in ((entity, ops.items() if isinstance(ops, dict) else ops) for entity, ops in entries)
    ]
    answer = wire.ask(kind(entries=requested, validate_only=validate_only), version)
    return [entry.error_code for entry in answer.entries]


def described(wire, *components, strict=False, version=1):
    """{entity: quotas} of components: type, match type and, for an exact match, the name. An error's number."""
    kind = messages.DescribeClientQuotasRequest
    wanted = [
        kind.ComponentData(entity_type=each[0], match_type=each[1], match=each[2] if len(each) > 2 else None)
        for each in components
    ]
    answer = wire.ask(kind(components=wanted, strict=strict), version)
    if answer.error_code:
        assert answer.entries is None
        return answer.error_code
    return {
        tuple(sorted((one.entity_type, one.entity_name) for one in entry.entity)): {
            value.key: value.value for value in entry.values
        }
        for entry in answer.entries
    }


ALICE = (("user", "alice"),)
BOTH = (("client-id", "c"), ("user", "alice"))
ADDRESS = (("ip", "127.0.0.9"),)


@pytest.mark.parametrize("version", range(2))
def test_quotas_are_set_described_and_removed(wire, version):
    assert described(wire, version=version) == {}
    errors = alter(
        wire,
        ({"user": "alice"}, {RATE: 1000, "request_percentage": 12.5}),
        ({"client-id": "c", "user": "alice"}, {"consumer_byte_rate": 2e9}),
        ({"user": None}, {"controller_mutation_rate": 0.5}),
        ({"ip": "127.0.0.9"}, {"connection_creation_rate": 5}),
        version=version,
    )
    assert errors == [0] * 4
    assert described(wire, version=version) == {
        ALICE: {RATE: 1000.0, "request_percentage": 12.5},
        BOTH: {"consumer_byte_rate": 2e9},
        (("user", None),): {"controller_mutation_rate": 0.5},
        ADDRESS: {"connection_creation_rate": 5.0},
    }
    assert alter(wire, ({"user": "alice"}, {RATE: None, "request_percentage": 20}), version=version) == [0]
    assert described(wire, ("user", 0, "alice"), strict=True) == {ALICE: {"request_percentage": 20.0}}
    gone = ({"user": "alice"}, {"request_percentage": None}), ({"user": "bob"}, {RATE: None, "no_such_rate": None})
    assert alter(wire, *gone, version=version) == [0, 0]
    assert described(wire, ("user", 0, "alice"), strict=True) == {}


def test_a_filter_takes_names_the_default_and_anything(wire):
    for entity in ({"user": "alice"}, {"user": None}, {"user": "alice", "client-id": "c"}, {"client-id": "c"}):
        assert alter(wire, (entity, {RATE: 1})) == [0]
    assert described(wire, ("user", 0, "alice")).keys() == {ALICE, BOTH}
    assert described(wire, ("user", 0, "alice"), strict=True).keys() == {ALICE}
    assert described(wire, ("user", 1)).keys() == {(("user", None),)}
    assert described(wire, ("user", 2)).keys() == {ALICE, BOTH, (("user", None),)}
    assert described(wire, ("user", 2), ("client-id", 0, "c")).keys() == {BOTH}


def test_an_address_is_found_however_it_is_written(wire):
    for told in ("2001:DB8:0::1", "::ffff:127.0.0.9"):
        assert alter(wire, ({"ip": told}, {"connection_creation_rate": 5})) == [0]
        (found,) = described(wire, ("ip", 0, told)).values()
        assert found == {"connection_creation_rate": 5.0}
    assert described(wire, ("ip", 0, "no address")) == {}


def test_an_entity_that_is_named_twice_is_refused_however_it_is_written(wire):
    one, other = {"ip": "127.0.0.9"}, {"ip": "::ffff:127.0.0.9"}
    rate = "connection_creation_rate"
    twice, twice_too, once = alter(wire, (one, {rate: 5}), (other, {"no_such": None}), ({"ip": None}, {rate: 7}))
    assert (twice, twice_too, once) == (Error.INVALID_REQUEST, Error.INVALID_REQUEST, 0)
    assert described(wire) == {(("ip", None),): {rate: 7.0}}


FILTERS = [
    ([("zebra", 2)], Error.UNSUPPORTED_VERSION),
    ([("", 2)], Error.INVALID_REQUEST),
    ([("ip", 3)], Error.INVALID_REQUEST),
    ([("user", 0)], Error.INVALID_REQUEST),
    ([("user", 1, "alice")], Error.INVALID_REQUEST),
    ([("user", 2), ("user", 2)], Error.INVALID_REQUEST),
    ([("user", 2), ("ip", 2)], Error.INVALID_REQUEST),
]


def test_a_filter_that_means_nothing_is_refused(wire):
    for components, error in FILTERS:
        assert described(wire, *components) == error, components


REFUSED = [
    ({}, {RATE: 1}),
    ({"zebra": "z"}, {RATE: 1}),
    ({"user": ""}, {RATE: 1}),
    ({"user": "alice", "ip": "127.0.0.1"}, {RATE: 1}),
    ({"ip": "127.0.0.1"}, {RATE: 1}),
    ({"ip": "no address"}, {"connection_creation_rate": 1}),
    ({"user": "alice"}, {"connection_creation_rate": 1}),
    ({"user": "alice"}, {"no_such_rate": 1}),
    ({"user": "alice"}, {RATE: 0.5}),
    ({"user": "alice"}, {RATE: -1}),
    ({"user": "alice"}, {RATE: float("nan")}),
    ({"user": "alice"}, {RATE: 1e19}),
    ({"user": "alice"}, {"request_percentage": float("inf")}),
    ({"user": "alice"}, [(RATE, 1), (RATE, 2)]),
]


def test_what_cannot_be_a_quota_is_refused_and_changes_nothing(wire):
    for entry in REFUSED:
        assert alter(wire, entry) == [Error.INVALID_REQUEST], entry
    twice = ({"user": "a", "client-id": "c"}, {RATE: 1}), ({"client-id": "c", "user": "a"}, {RATE: 2})
    assert alter(wire, *twice) == [Error.INVALID_REQUEST] * 2
    assert alter(wire, ({"user": "a"}, {RATE: 1}), validate_only=True) == [0]
    assert described(wire) == {}
    assert alter(wire, ({"user": "a"}, {RATE: 1}), ({"user": ""}, {RATE: 1})) == [0, Error.INVALID_REQUEST]
    assert described(wire) == {(("user", "a"),): {RATE: 1.0}}


def test_quotas_are_there_after_a_restart_and_on_every_node(broker, wire, connect):
    alter(wire, ({"user": "alice", "client-id": None}, {RATE: 7}))
    broker.stop()
    broker.start()
    assert described(connect(broker.bootstrap)) == {(("client-id", None), ("user", "alice")): {RATE: 7.0}}
    with Cluster(2) as cluster:
        alter(connect(cluster.nodes[1].bootstrap), ({"user": "alice"}, {RATE: 7}))
        assert described(connect(cluster.nodes[2].bootstrap)) == {ALICE: {RATE: 7.0}}


def test_what_cannot_be_stored_has_not_changed(broker, wire, monkeypatch):
    broker.disk.fail("sync", errno.EIO, times=1)
    assert alter(wire, ({"user": "alice"}, {RATE: 1})) == [Error.KAFKA_STORAGE_ERROR]
    broker.disk.mend()
    monkeypatch.setattr("tagwire.broker.quotas.stored.MOST_ENTITIES", 1)
    many = ({"user": "alice"}, {RATE: 1}), ({"user": "bob"}, {RATE: 1})
    assert alter(wire, *many) == [Error.POLICY_VIOLATION] * 2
    assert described(wire) == {}


def test_what_was_refused_and_may_be_stored_is_taken_back_before_the_same_is_said_to_be_so(
    broker, wire, connect, tmp_path
):
    alter(wire, ({"user": "alice"}, {RATE: 7}))
    broker.disk.fail("sync_directory", errno.EIO)
    assert alter(wire, ({"user": "alice"}, {RATE: 1})) == [Error.KAFKA_STORAGE_ERROR]
    assert described(wire) == {ALICE: {RATE: 7.0}}
    # The system may come back with this, since the disk refused to put back what was there, too.
    broker.disk.mend()
    stored = tmp_path / "data" / FILE
    stored.write_text(stored.read_text().replace("7.0", "1.0"))
    assert alter(wire, ({"user": "alice"}, {RATE: 7})) == [0]
    broker.stop()
    broker.start()
    assert described(connect(broker.bootstrap)) == {ALICE: {RATE: 7.0}}


@pytest.mark.parametrize(
    "content",
    [
        "{",
        '{"version": 0, "entries": [{"entity": {"zebra": "z"}, "quotas": {}}]}',
        '{"version": 0, "entries": [{"entity": {"user": 3}, "quotas": {}}]}',
        '{"version": 0, "entries": [{"entity": {"user": "a"}, "quotas": {"producer_byte_rate": "1"}}]}',
        '{"version": 0, "entries": [{"entity": {"user": "a"}, "quotas": {"producer_byte_rate": -1}}]}',
    ],
)
def test_a_damaged_file_stops_the_broker_and_is_named(tmp_path, content):
    with Broker(tmp_path / "data"):
        pass
    (tmp_path / "data" / FILE).write_text(content)
    with pytest.raises(StorageError, match=FILE):
        Broker(tmp_path / "data").start()


# Which one counts ----------------------------------------------------------------------------------------------------

ORDER = [
    ({"user": "alice", "client-id": "c"}, ("alice", "c")),
    ({"user": "alice", "client-id": None}, ("alice", "c")),
    ({"user": "alice"}, ("alice", "")),
    ({"user": None, "client-id": "c"}, ("alice", "c")),
    ({"user": None, "client-id": None}, ("alice", "c")),
    ({"user": None}, ("alice", "")),
    ({"client-id": "c"}, ("", "c")),
    ({"client-id": None}, ("", "c")),
]


@pytest.fixture
def kept(tmp_path):
    """Quotas, and a function that changes them."""
    with ThreadPoolExecutor(1) as executor:
        quotas = ClientQuotas(Files(), tmp_path, executor)

        def change(*entries):
            changes = {entity_of(list(entity.items())): wanted for entity, wanted in entries}
            asyncio.run(quotas.change(changes))

        yield quotas, change


def test_the_first_of_kafkas_order_counts(kept):
    quotas, change = kept
    change(*((entity, {RATE: float(place)}) for place, (entity, _) in enumerate(ORDER, 1)))
    for place, (entity, together) in enumerate(ORDER, 1):
        assert quotas.of_client(RATE, "alice", "c") == (*together, float(place))
        change((entity, {RATE: None}))
    assert quotas.of_client(RATE, "alice", "c") is None


def test_others_quotas_do_not_count_and_a_client_without_an_id_has_none_of_ids(kept):
    quotas, change = kept
    change(
        ({"user": "bob"}, {RATE: 1.0}),
        ({"client-id": "d"}, {RATE: 2.0}),
        ({"user": "alice", "client-id": "d"}, {RATE: 3.0}),
        ({"user": "alice"}, {"consumer_byte_rate": 4.0}),
    )
    assert quotas.of_client(RATE, "alice", "c") is None
    change(({"client-id": None}, {RATE: 5.0}))
    assert quotas.of_client(RATE, "alice", "c") == ("", "c", 5.0)
    assert quotas.of_client(RATE, "alice", "") is None


@pytest.mark.parametrize(
    ("told", "text"),
    [("127.0.0.1", "127.0.0.1"), ("::ffff:10.0.0.1", "10.0.0.1"), ("FE80::1%eth0", "fe80::1"), ("localhost", None)],
)
def test_an_address_is_compared_in_one_way(told, text):
    assert address_text(told) == text
