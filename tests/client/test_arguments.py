"""What the client is handed over in the forms that people write, and what it says of what cannot be meant."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tagwire import messages
from tagwire.broker import Broker, Listener
from tagwire.client import (
    EARLIEST,
    Admin,
    AtTimestamp,
    Client,
    Committed,
    ConfigResource,
    Consumer,
    NewTopic,
    OffsetAndMetadata,
    Producer,
    Reader,
    TopicPartition,
    end_transaction,
    partition_of,
)
from tagwire.client.config import parse
from tagwire.errors import ConfigError, EncodeError, Error, KafkaError
from tagwire.records import Record

NOW = 1_700_000_000_000
ORDERS = [TopicPartition("orders", 0), TopicPartition("orders", 1)]


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    """A broker with ten records in each partition of `orders` and of `payments`, which has one."""
    with Broker(fsync="never") as broker, Client(broker.bootstrap) as client:
        Admin(client).create_topics([NewTopic("orders", 2), "payments"])
        with Producer(client) as producer:
            for topic, partition in (*ORDERS, ("payments", 0)):
                for number in range(10):
                    value = f"{topic}-{partition}@{number}".encode()
                    producer.send(topic, value, partition=partition, timestamp=NOW + number)
        yield broker.bootstrap


@pytest.fixture
def client(bootstrap: str) -> Iterator[Client]:
    with Client(bootstrap) as client:
        yield client


def counted(client: Client, starts: Any, **options: Any) -> dict[str, int]:
    """How many records a reader gives of each partition."""
    found: dict[str, int] = {}
    with Reader(client, starts, stop_at_end=True, **options) as reader:
        for record in reader.records():
            place = f"{record.topic}-{record.partition}"
            found[place] = found.get(place, 0) + 1
    return found


BOTH = {"orders-0": 10, "orders-1": 10}
ALL = {**BOTH, "payments-0": 10}
STARTS: list[tuple[Any, dict[str, int]]] = [
    ("orders", BOTH),
    (["orders", "payments"], ALL),
    (frozenset(["orders", "payments"]), ALL),
    (("orders", 1), {"orders-1": 10}),
    (TopicPartition("orders", 1), {"orders-1": 10}),
    ([("orders", 0), "payments"], {"orders-0": 10, "payments-0": 10}),
    ({"orders": 0}, BOTH),
    ({"orders": 8, "payments": 3}, {"orders-0": 2, "orders-1": 2, "payments-0": 7}),
    ({"orders": "earliest"}, BOTH),
    ({"orders": "latest", ("orders", 1): 4}, {"orders-1": 6}),
    ({("orders", 1): 4, "orders": "latest"}, {"orders-1": 6}),
    ({TopicPartition("orders", 0): "latest", ORDERS[1]: "earliest"}, {"orders-1": 10}),
    ({"orders": AtTimestamp(NOW + 7)}, {"orders-0": 3, "orders-1": 3}),
    ({"orders": datetime.fromtimestamp((NOW + 7) / 1000, UTC)}, {"orders-0": 3, "orders-1": 3}),
    ({"orders": Committed("earliest")}, BOTH),
]


@pytest.mark.parametrize(("starts", "expected"), STARTS, ids=map(str, range(len(STARTS))))
def test_a_reader_takes_topics_and_words_for_offsets(client: Client, starts: Any, expected: dict[str, int]) -> None:
    assert counted(client, starts, group="nobody") == expected


def test_ends_are_given_in_the_same_forms(client: Client) -> None:
    assert counted(client, "orders", end_offsets={"orders": 4}) == {"orders-0": 4, "orders-1": 4}
    assert counted(client, "orders", end_offsets={"orders": 4, ("orders", 1): "latest"}) == {
        "orders-0": 4,
        "orders-1": 10,
    }
    with Reader(client, ["orders", "payments"], end_offsets="latest") as reader:
        assert sum(batch.num_rows for batch in reader) == 30


def test_topics_alone_start_where_a_group_stands_if_one_is_given(client: Client) -> None:
    with Reader(client, "orders", group="landing", end_offsets={"orders": 6}) as reader:
        assert sum(batch.num_rows for batch in reader) == 12
        reader.commit()
    assert counted(client, "orders", group="landing") == {"orders-0": 4, "orders-1": 4}
    assert counted(client, "orders") == BOTH


def test_a_reader_is_moved_to_a_word(client: Client) -> None:
    with Reader(client, {("orders", 0): "latest"}, stop_at_end=True) as reader:
        assert (reader.position(("orders", 0)), list(reader)) == (10, [])
        reader.seek(("orders", 0), "earliest")
        assert sum(batch.num_rows for batch in reader) == 10


def test_one_column_may_be_named_alone(client: Client) -> None:
    with Reader(client, "payments", columns="value", stop_at_end=True) as reader:
        assert next(reader).schema.names == ["value"]


def test_offsets_are_listed_by_topic_and_by_word(client: Client) -> None:
    assert client.list_offsets({"orders": "latest"}) == dict.fromkeys(ORDERS, 10)
    assert client.list_offsets({("orders", 0): "earliest", ORDERS[1]: EARLIEST}) == dict.fromkeys(ORDERS, 0)
    assert client.list_offsets({"payments": AtTimestamp(NOW + 4)}) == {("payments", 0): 4}


def test_a_topic_that_does_not_exist_is_named(bootstrap: str) -> None:
    with Client(bootstrap, timeout=1) as client:
        for starts in ("missing", {"missing": 0}, ["missing"]):
            with pytest.raises(KafkaError, match="topic 'missing'") as caught:
                Reader(client, starts)
            assert caught.value.error is Error.UNKNOWN_TOPIC_OR_PARTITION


def test_properties_are_taken_wherever_addresses_are(bootstrap: str) -> None:
    properties = {"bootstrap.servers": bootstrap, "client.id": "shop", "group.id": "by-name", "linger.ms": 0}
    with Producer({**properties, "acks": "all", "compression.type": "lz4"}) as producer:
        assert producer.send("by-properties", b"1").result().offset == 0
    with Admin(properties) as admin:
        assert "by-properties" in [topic.name for topic in admin.list_topics()]
    with Client(properties) as client:
        assert client.metadata("by-properties").topics.keys() == {"by-properties"}
    with Reader({**properties, "fetch.wait.max.ms": 100}, "by-properties", stop_at_end=True) as reader:
        assert [record.value for record in reader.records()] == [b"1"]
        reader.commit()  # group.id is the reader's group
    with Admin([bootstrap, bootstrap]) as admin:
        assert admin.group_offsets("by-name")["by-properties", 0].offset == 1


def test_what_stands_beside_properties_counts_instead_of_them(bootstrap: str) -> None:
    with Client({"bootstrap.servers": bootstrap, "request.timeout.ms": 1500}, timeout=7) as client:
        assert client.timeout == 7
    with pytest.raises(ConfigError, match="ssl_cafile='nowhere'"):
        Client({"bootstrap.servers": bootstrap, "security.protocol": "SSL"}, ssl_cafile="nowhere")


def test_librdkafkas_other_names_are_the_same_properties() -> None:
    given = {
        "metadata.broker.list": "a:1",
        "request.required.acks": 1,
        "compression.codec": "zstd",
        "queue.buffering.max.ms": 2.5,
        "message.timeout.ms": 3000,
        "message.send.max.retries": 4,
        "max.in.flight": 2,
        "enable.idempotence": False,
    }
    settings = Client(given).produce_settings
    assert (settings.acks, settings.compression, settings.linger, settings.timeout) == (1, "zstd", 0.0025, 3.0)
    assert (settings.retries, settings.in_flight, settings.idempotence) == (4, 2, False)
    with pytest.raises(ConfigError, match=r"compression\.type: given twice"):
        Client({**given, "compression.type": "lz4", "compression.codec": "gzip"})


def test_an_admin_takes_a_name_where_it_takes_names(client: Client) -> None:
    admin = Admin(client)
    admin.create_topics("one")
    admin.create_topics(NewTopic("two", configs={"retention.ms": -1, "preallocate": True}))
    configs = admin.describe_configs(("topic", "two"))["topic", "two"]
    assert (configs["retention.ms"].value, configs["preallocate"].value) == ("-1", "true")
    admin.alter_configs({("topic", "two"): {"retention.ms": 1000}})
    assert admin.describe_configs([("topic", "two")])["topic", "two"]["retention.ms"].value == "1000"
    admin.delete_topics("one")
    names = [topic.name for topic in admin.list_topics()]
    assert ("one" in names, "two" in names, "orders" in names) == (False, True, True)
    admin.alter_group_offsets("g", {"orders": "latest", ("payments", 0): AtTimestamp(NOW + 3)})
    assert {str(at): found.offset for at, found in admin.group_offsets("g").items()} == {
        "orders-0": 10,
        "orders-1": 10,
        "payments-0": 3,
    }
    assert admin.group_offsets("g", "orders").keys() == set(ORDERS)
    admin.delete_group_offsets("g", ["orders"])
    assert admin.group_offsets("g").keys() == {("payments", 0)}
    assert admin.describe_groups("g").keys() == {"g"}
    assert [(each.group, each.lag) for each in admin.group_lags("g", topics="payments")] == [("g", 7)]
    assert "g" in [group.group for group in admin.list_groups(states="Empty")]
    admin.delete_groups("g")
    assert admin.describe_producers("orders").keys() == set(ORDERS)
    assert admin.describe_log_dirs(1, "orders")[1][0].replicas.keys() == set(ORDERS)


def test_headers_may_be_a_dict(client: Client) -> None:
    with Producer(client) as producer:
        producer.send("with-headers", b"1", headers={"trace-id": b"01J2", "origin": None})
    with Reader(client, "with-headers", stop_at_end=True) as reader:
        assert next(reader.records()).headers == (("trace-id", b"01J2"), ("origin", None))


NUMPYS: list[tuple[type, dict[str, Any]]] = [
    (Client, {"timeout": np.int64(20), "exclude": {"Fetch": np.array([4, 5])}}),
    (Client, {"versions": {"ApiVersions": np.int64(3), "Metadata": (np.int64(4), np.int64(9))}}),
    (Producer, {"linger": np.float32(0.5), "batch_bytes": np.int64(1000), "retries": np.int32(3)}),
    (lambda b, **options: Reader(b, "orders", **options), {"batch_rows": np.int64(5), "max_wait_ms": np.int64(9)}),
    (lambda b, **options: Reader(b, "orders", **options), {"max_decompressed": np.int64(1 << 20)}),
]


@pytest.mark.parametrize(("kind", "options"), NUMPYS, ids=[str(row[1]) for row in NUMPYS])
def test_numbers_of_numpy_are_numbers(bootstrap: str, kind: Callable[..., Any], options: dict[str, Any]) -> None:
    with kind(bootstrap, **options) as made:
        if isinstance(made, Reader):
            next(made)


def test_operations_may_take_for_ever(bootstrap: str) -> None:
    with Client(bootstrap, timeout=float("inf")) as client:
        with Reader(client, {("orders", 0): 0}, stop_at_end=True) as reader:
            assert len(list(reader.records())) == 10
        with Consumer(client, group="for-ever", offset_reset="earliest") as consumer:
            consumer.assign(("orders", 0))
            assert len(consumer.consume(10, 30)) == 10


def test_several_addresses_may_be_a_set_or_come_one_by_one(bootstrap: str) -> None:
    for given in ({bootstrap}, iter([bootstrap]), np.array([bootstrap]), {bootstrap: None}.keys()):
        with Client(given) as client:  # type: ignore[arg-type]
            assert "orders" in client.metadata("orders").topics


def test_a_setting_is_its_value_whatever_it_is_a_member_of(bootstrap: str, client: Client) -> None:
    admin = Admin(client)
    Policy = Enum("Policy", {"COMPACT": "compact"}, type=str)  # noqa: N806
    admin.create_topics(NewTopic("settings", configs={"cleanup.policy": Policy.COMPACT}))
    admin.alter_configs({("topic", "settings"): {"retention.ms": np.int64(7)}})  # type: ignore[dict-item]
    found = admin.describe_configs(("topic", "settings"))[ConfigResource("topic", "settings")]
    assert (found["cleanup.policy"].value, found["retention.ms"].value) == ("compact", "7")
    Isolation = Enum("Isolation", {"COMMITTED": "read_committed"}, type=str)  # noqa: N806
    given = {"isolation.level": Isolation.COMMITTED, "fetch.max.bytes": np.int64(9), "ssl.ca.location": Path("ca.pem")}
    settings = parse({"bootstrap.servers": bootstrap, **given})
    assert (settings.fetch.isolation, settings.fetch.max_bytes) == ("read_committed", 9)
    assert settings.security == {"ssl_cafile": "ca.pem"}


def test_interceptors_may_come_one_by_one(client: Client) -> None:
    seen: list[int] = []

    def see(record: Record) -> None:
        seen.append(record.offset)

    with Reader(client, {("orders", 0): 0}, stop_at_end=True) as reader:
        assert len(list(reader.records(interceptors=iter([see])))) == len(seen) == 10


def test_a_broker_takes_numbers_of_numpy_and_sets_of_listeners() -> None:
    listeners = {Listener("127.0.0.1", np.int64(0))}  # type: ignore[arg-type]
    numbers: Any = {"num_partitions": np.int64(2), "idle_timeout_s": np.float32(9)}
    with Broker(listeners=listeners, **numbers) as broker, Admin(broker.bootstrap) as admin:
        admin.create_topics(NewTopic("two", num_partitions=-1))
    with Broker(sasl={"PLAIN"}, users={"alice": "secret"}):
        pass


# What cannot be meant ------------------------------------------------------------------------------------------------

TELLS_CLIENTS: list[tuple[str, Callable[[str], object], str]] = [
    ("no address", lambda b: Client(5), r'needs "HOST:PORT,HOST:PORT", a list of addresses, or a dict'),  # type: ignore[arg-type]
    ("nothing", lambda b: Producer(None), r"bootstrap of type NoneType: needs"),  # type: ignore[arg-type]
    ("bytes", lambda b: Admin(b.encode()), r"bootstrap of type bytes: needs"),
    ("a broker", lambda b: Client(Broker()), r"needs .HOST:PORT,HOST:PORT., such as its bootstrap"),  # type: ignore[arg-type]
    ("properties without addresses", lambda b: Producer({"client.id": "x"}), r"bootstrap\.servers: missing"),
    ("a misspelt property", lambda b: Admin({"bootstrap_servers": b}), r"bootstrap\.servers is one"),
    ("a property of None", lambda b: Client({"bootstrap.servers": None}), r"bootstrap\.servers: needs text, a number"),
    ("a misspelt option", lambda b: Client(b, security_protocal="SSL"), "security_protocol is one"),  # type: ignore[call-arg]
    ("an unknown option", lambda b: Client(b, foo=1), "foo: no such option; allowed are apis, client_id"),  # type: ignore[call-arg]
    ("an unknown option of a producer", lambda b: Producer(b, lingr=1), "lingr: no such option; linger is one"),  # type: ignore[call-arg]
    ("another's option", lambda b: Producer(b, header_serde=1), "header_serde: no such option; header_serdes is one"),  # type: ignore[call-arg]
    ("a transaction without end", lambda b: Producer(b, transaction_timeout=float("inf")), "transaction_timeout=inf"),
    ("a misspelt option of its own", lambda b: Client(b, tiemout=3), "tiemout: no such option; timeout is one"),  # type: ignore[call-arg]
    ("a timeout of text", lambda b: Client(b, timeout="5"), "timeout='5': needs a number"),  # type: ignore[arg-type]
    ("a client id that is none", lambda b: Client(b, client_id=5), "client_id=5: allowed is one name"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("name", "call", "says"), TELLS_CLIENTS, ids=[row[0] for row in TELLS_CLIENTS])
def test_how_to_make_a_client_is_told(bootstrap: str, name: str, call: Callable[[str], object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        call(bootstrap)


OPTIONS: list[tuple[type, dict[str, Any], str]] = [
    (Client, {"exclude": ["Produce"]}, r'exclude: needs a dict by API, such as \{"Produce": "5-6"\}, not list'),
    (Client, {"exclude": {"Produce": 5.5}}, "exclude: Produce=5.5: allowed is a version, N-M"),
    (Client, {"versions": 2.8}, 'versions: needs a release as text, "2.8", or a dict by API, .* not float'),
    (Client, {"fallback": 0.9}, 'fallback: needs a release as text, such as "0.9.0", not float'),
    (Client, {"apis": ["Greet"]}, "one of apis: needs what tagwire.rpc.api_of makes, not str"),
    (Client, {"security_protocol": "SSL", "ssl_cafile": 5}, "ssl_cafile: needs a path, not int"),
    (Client, {"security_protocol": "SSL", "ssl_context": "x"}, "ssl_context: needs an ssl.SSLContext, not str"),
    (Client, {"security_protocol": "SSL", "ssl_check_hostname": "false"}, "ssl_check_hostname: needs True or False"),
    (Client, {"sasl_plain_password": ["hunter2"]}, "sasl_plain_password: needs text, not list$"),
    (Producer, {"topic_compression": "zstd"}, 'topic_compression: needs a dict by topic, {"orders": "zstd"}, not str'),
    (Producer, {"transactional_id": 5}, "transactional_id: needs text, not int"),
    (Producer, {"idempotence": "yes"}, "idempotence: needs True or False, not str"),
    (Producer, {"interceptors": print}, "interceptors=<.*>: allowed is a list of functions of a topic and a record"),
    (Producer, {"interceptors": 3}, "interceptors=3: allowed is a list of functions of a topic and a record"),
    (Consumer, {"interceptors": 3}, "interceptors: needs a list of functions of a record, not int"),
    (Client, {"exclude": {1: "5-6"}}, 'exclude: 1: needs the name of an API, such as "Fetch", as text'),
    (Client, {"versions": {None: 3}}, "versions: None: needs the name of an API"),
    (Client, {"apis": [None]}, "one of apis: needs what tagwire.rpc.api_of makes"),
    (Producer, {"header_serdes": {}}, r"header_serdes: needs HeaderSerdes\(\{...\}\), not dict"),
    (Producer, {"dialect": "int-headers", "register": "headers.toml"}, "register: needs a HeaderRegister, such as"),
    (Producer, {"acks": ["all"]}, r"acks=\['all'\]: allowed is all, 0 or 1"),
    (Producer, {"linger": "5"}, "linger='5': needs a number from 0 on"),
]


@pytest.mark.parametrize(("kind", "options", "says"), OPTIONS, ids=[row[2] for row in OPTIONS])
def test_an_option_of_another_type_is_named(bootstrap: str, kind: type, options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        kind(bootstrap, **options)
    assert "hunter2" not in str(caught.value)


def test_what_calls_are_given_is_named_too(client: Client) -> None:
    with pytest.raises(EncodeError, match=r"message is str, not a request of .*, such as messages.MetadataRequest\("):
        client.request("Metadata")
    with pytest.raises(ConfigError, match=r"isolation=\['x'\]: allowed is read_uncommitted"):
        client.list_offsets({"orders": 0}, isolation=["x"])  # type: ignore[arg-type]
    with pytest.raises(EncodeError, match="what is hashed must be bytes, not str"):
        partition_of("key", 3)  # type: ignore[arg-type]
    with Producer(client, transactional_id="calls") as producer:
        for call in (producer.flush, producer.init_transactions, producer.close):
            with pytest.raises(ConfigError, match="timeout: needs a number of seconds, not str"):
                call("5")  # type: ignore[operator]
        with pytest.raises(ConfigError, match="resume: needs the identity of a producer, not str"):
            producer.init_transactions(resume="x")  # type: ignore[arg-type]
        producer.init_transactions()
        producer.begin_transaction()
        with pytest.raises(ConfigError, match="offsets: orders-0=-7: allowed is an offset from 0 on"):
            producer.send_offsets({("orders", 0): -7}, "g")
    with Reader(client, "orders", group="g", stop_at_end=True) as reader:
        with pytest.raises(ConfigError, match="interceptors: needs a list of functions of a record"):
            next(reader.records(interceptors=print))  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="offsets='x': allowed is a dict by topic"):
            reader.commit("x")  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="partition='orders': allowed is a topic and a partition"):
            reader.seek("orders", 0)  # type: ignore[arg-type]


TELLS_READERS: list[tuple[Any, dict[str, Any], str]] = [
    (5, {}, r"""starts=5: allowed is a topic, such as "orders", .* \("orders", 0\), or a list of these"""),
    (None, {}, "starts=None: allowed is a topic"),
    (b"orders", {}, "starts=b'orders': allowed is a topic"),
    ([5], {}, "one of starts=5: allowed is a topic"),
    ([{"orders": 0}], {}, "one of starts=<dict>: allowed is a topic"),
    ({5: 0}, {}, r"""one of starts=5: allowed is a dict by topic or by partition, \{"orders": "earliest"\}"""),
    ({("orders", "0"): 0}, {}, r"one of starts=\('orders', '0'\): allowed is a dict"),
    (
        {"orders": "first"},
        {},
        r"""starts: orders-0='first': allowed is an offset, "earliest", "latest", an AtTimestamp""",
    ),
    ({"orders": None}, {}, r"starts: orders-0=None: allowed is an offset.*, or Committed\(\)"),
    ({"orders": {0: 5}}, {}, r"starts: orders-0=<dict>: allowed is an offset"),
    ({"orders": 1.5}, {}, r"starts: orders-0=1.5: allowed is an offset"),
    ({"orders": datetime(2026, 1, 1)}, {}, r"starts: orders-0=2026-01-01 .*: a time without a time zone"),
    ({"orders": AtTimestamp("x")}, {}, r"AtTimestamp\('x'\): allowed is AtTimestamp\(milliseconds"),  # type: ignore[arg-type]
    ({"orders": Committed("first")}, {"group": "g"}, r"orders-0, fallback='first': allowed is"),  # type: ignore[arg-type]
    ("orders", {"end_offsets": 5}, r"""end_offsets=5: allowed is a dict by partition, \{\("orders", 0\): 100\}"""),
    ("orders", {"end_offsets": {"payments": 5}}, "end_offsets: of topic 'payments' no partition is assigned"),
    ("orders", {"end_offsets": {("payments", 0): 5}}, "end offset of payments-0: the partition is not assigned"),
    ("orders", {"columns": 5}, "columns=5: allowed is a name"),
    ("orders", {"group": ["g"]}, "group=<list>: allowed is one name"),
    ("orders", {"batch_rows": "many"}, "batch_rows='many': needs a number from 1 on"),
    ("orders", {"min_bytes": 2**31}, "min_bytes=2147483648: allowed is at most 2147483647"),
]


@pytest.mark.parametrize(("starts", "options", "says"), TELLS_READERS, ids=[row[2] for row in TELLS_READERS])
def test_what_a_reader_takes_is_told(client: Client, starts: Any, options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Reader(client, starts, **options)


def test_properties_in_the_wrong_place_are_not_repeated(client: Client) -> None:
    for starts in ({"sasl.password": ["hunter2"]}, [{"sasl.password": "hunter2"}], {5: "hunter2"}):
        with pytest.raises((ConfigError, KafkaError)) as caught:
            Reader(client, starts)
        assert "hunter2" not in str(caught.value)


TELLS_ADMINS: list[tuple[Callable[[Admin], object], str]] = [
    (lambda a: a.elect_leaders([("orders", 0)]), "election_type=<list>: allowed is preferred or unclean"),  # type: ignore[arg-type]
    (lambda a: a.elect_leaders({"orders": 0}), "election_type=<dict>: allowed is preferred or unclean"),  # type: ignore[arg-type]
    (lambda a: a.create_topics(5), r"""topics=5: allowed is NewTopic\("orders", num_partitions=3\)"""),  # type: ignore[arg-type]
    (lambda a: a.create_topics({"orders": 3}), r"topics=<dict>: allowed is NewTopic"),  # type: ignore[arg-type]
    (lambda a: a.create_topics(NewTopic("n", "3")), "num_partitions of 'n'='3': allowed is a whole number"),  # type: ignore[arg-type]
    (lambda a: a.create_topics(NewTopic("n", configs={"a": None})), "configs of n of a=None: allowed is text"),  # type: ignore[dict-item]
    (lambda a: a.create_partitions(["n"]), r"""totals=<list>: allowed is a dict by topic, \{"orders": 6\}"""),  # type: ignore[arg-type]
    (lambda a: a.delete_topics(5), "names=5: allowed is a name"),  # type: ignore[arg-type]
    (lambda a: a.delete_topics({"orders": 1}), "names=<dict>: allowed is a name"),  # type: ignore[arg-type]
    (lambda a: a.delete_topics([5]), "one of names=5: allowed is one name"),  # type: ignore[list-item]
    (lambda a: a.describe_configs("orders"), r"""resources='orders': allowed is \("topic", "orders"\)"""),  # type: ignore[arg-type]
    (lambda a: a.alter_configs({"orders": {}}), r"""a key of changes='orders': .*\{\("topic", "orders"\): """),
    (lambda a: a.alter_configs({("topic", "t"): "x"}), "changes of topic 't'='x': allowed is a dict by config"),  # type: ignore[dict-item]
    (lambda a: a.group_offsets(["g"]), "group=<list>: allowed is one name"),  # type: ignore[arg-type]
    (lambda a: a.alter_group_offsets("g", {"orders": -7}), "offsets: orders-0=-7: allowed is an offset from 0 on"),
    (lambda a: a.alter_group_offsets("g", {"orders": OffsetAndMetadata(-1)}), "orders-0=-1: allowed is an offset from"),
    (lambda a: a.alter_group_offsets("g", [5]), r"""offsets=<list>: allowed is a dict by topic"""),  # type: ignore[arg-type]
    (lambda a: a.alter_group_offsets("g", {"orders": "5"}), "offsets: orders-0='5': .*, or an OffsetAndMetadata"),  # type: ignore[dict-item]
    (lambda a: a.delete_records({"orders": 5}), r"a key of before='orders': allowed is a dict by topic and part"),  # type: ignore[arg-type]
    (lambda a: a.delete_records({("orders", 0): "5"}), "before: orders-0='5': allowed is an offset, or -1"),  # type: ignore[dict-item]
    (lambda a: a.describe_log_dirs("0"), "brokers='0': allowed is a number"),  # type: ignore[arg-type]
    (lambda a: a.list_transactions(states=5), "states=5: allowed is a name"),  # type: ignore[arg-type]
    (lambda a: a.abort_transaction("orders", 1, 1), r"partition='orders': allowed is a topic and a partition"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("call", "says"), TELLS_ADMINS, ids=[row[1] for row in TELLS_ADMINS])
def test_what_an_admin_takes_is_told(client: Client, call: Callable[[Admin], object], says: str) -> None:
    before = client.metadata().topics.keys()
    with pytest.raises(ConfigError, match=says):
        call(Admin(client))
    assert client.metadata().topics.keys() == before


TELLS_PRODUCERS: list[tuple[Callable[[Producer], object], type[Exception], str]] = [
    (lambda p: p.send("orders", "text"), EncodeError, r'value must be bytes or None, not str: write "\.\.\."\.encode'),  # type: ignore[arg-type]
    (lambda p: p.send("orders", b"", key="k"), EncodeError, r'key must be bytes or None, not str: write "\.\.\."'),  # type: ignore[arg-type]
    (lambda p: p.send("orders", b"", headers={"a": "b"}), EncodeError, "value of a header must be bytes or None"),
    (lambda p: p.send("orders", b"", headers="a"), EncodeError, r"such as \[\('trace-id', b'01J2'\)\]"),  # type: ignore[arg-type]
    (lambda p: p.send("orders", b"", timestamp="now"), EncodeError, "timestamp .* whole milliseconds .* not str"),  # type: ignore[arg-type]
    (lambda p: p.send("orders", b"", timestamp=1.5), EncodeError, "timestamp .* whole milliseconds .* not float"),  # type: ignore[arg-type]
    (lambda p: p.send("orders", b"", partition="0"), EncodeError, "partition .* a whole number, such as 0, not str"),  # type: ignore[arg-type]
    (lambda p: p.send(["orders"], b""), EncodeError, 'topic of a record must be text, such as "orders", not list'),  # type: ignore[arg-type]
    (lambda p: p.send(b"orders", b""), EncodeError, "topic of a record must be text"),  # type: ignore[arg-type]
    (lambda p: p.send_batch("orders", 0, "text"), EncodeError, "batch for orders-0 is str, not bytes"),  # type: ignore[arg-type]
    (lambda p: p.send_batch("orders", "0", b""), EncodeError, "partition .* a whole number"),  # type: ignore[arg-type]
    (lambda p: p.send_arrow("orders", [1]), EncodeError, r"rows must be a pyarrow.RecordBatch .* not list: write"),
    (
        lambda p: p.send_arrow("orders", pa.table({"a": [1]})),
        EncodeError,
        "neither a column 'key' nor 'value', but 'a'",
    ),
    (
        lambda p: p.send_arrow("orders", pa.table({"key": ["1"], "Values": ["1"]})),
        EncodeError,
        "column 'Values' is not looked at: is it meant to be 'value'",
    ),
    (
        lambda p: p.send_arrow("orders", pa.table([["1"], ["2"], ["3"]], names=["key", "value", "value"])),
        EncodeError,
        "column value is there 2 times",
    ),
    (lambda p: p.send_arrow("orders", pa.table({"value": ["1"]}), "0"), EncodeError, "partition .* a whole number"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("call", "kind", "says"), TELLS_PRODUCERS, ids=[row[2] for row in TELLS_PRODUCERS])
def test_what_a_producer_takes_is_told(
    client: Client, call: Callable[[Producer], object], kind: type[Exception], says: str
) -> None:
    before = client.list_offsets({"orders": "latest"})
    with Producer(client) as producer, pytest.raises(kind, match=says):
        call(producer)
    assert client.list_offsets({"orders": "latest"}) == before


def test_a_transaction_is_given_offsets_by_partition_and_ended_by_properties(client: Client, bootstrap: str) -> None:
    with Producer(client, transactional_id="t") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        with pytest.raises(ConfigError, match=r'a key of offsets=\'orders\': .*\{\("orders", 0\): 42\}'):
            producer.send_offsets({"orders": 5}, "g")  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match=r"offsets: orders-0='5': allowed is an offset"):
            producer.send_offsets({("orders", 0): "5"}, "g")  # type: ignore[dict-item]
        with pytest.raises(ConfigError, match=r"group=5: allowed is one name"):
            producer.send_offsets({("orders", 0): 5}, 5)  # type: ignore[arg-type]
        producer.send("payments", b"never seen")
        producer.flush()
        identity = producer.identity
        producer.close(abort=False)
    known = (identity.producer_id, identity.epoch)
    end_transaction(
        {"bootstrap.servers": bootstrap}, "t", *known, commit=False, transaction_version=identity.transaction_version
    )


@pytest.mark.parametrize("given", [["orders"], None, 1, b"orders", {"orders": 0}], ids=repr)
def test_a_topic_is_asked_for_by_one_name(client: Client, given: Any) -> None:
    with pytest.raises(ConfigError, match=r"^name=.*: allowed is one name"):
        client.topic(given)


@pytest.mark.parametrize("given", [[1], "1", 1.0, True, {1: 2}], ids=repr)
def test_a_broker_is_asked_for_by_its_number(client: Client, given: Any) -> None:
    calls: list[Callable[[], object]] = [
        lambda: client.versions(given),
        lambda: client.features(given),
        lambda: client.request(messages.MetadataRequest(topics=None), node=given),
    ]
    for call in calls:
        with pytest.raises(ConfigError, match=r"^node=.*: allowed is a broker's number"):
            call()
