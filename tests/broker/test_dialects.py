"""Topics of the int-headers dialect: stored as its clients send, bridged for all others, never altered."""

from __future__ import annotations

import asyncio
from zlib import crc32

import aiokafka
import confluent_kafka
import pytest

from tagwire import messages
from tagwire.broker import Broker, Settings
from tagwire.broker.config_file import read_config
from tagwire.broker.dialects import MAX_RECORDS
from tagwire.client import EARLIEST, Producer, Reader
from tagwire.errors import ConfigError, Error, KafkaError
from tagwire.records import HeaderEntry, HeaderRegister, Record, assign_offsets, read, rewrite, write
from tagwire.records.files import partitions
from tagwire.records.files.partition_metadata import read_dialect
from tagwire.records.files.verify import verify_partition
from tagwire.rpc.dialects import dialect_of, say_dialect

DIALECT = "int-headers"
REGISTER = HeaderRegister([HeaderEntry(1_114_000, "app.name")], name="headers.toml")
HEADERS = [(7, b""), (1_114_000, b"ig")]
NAMED = [("7", b""), ("app.name", b"ig")]
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


@pytest.fixture
def broker(tmp_path):
    with Broker(tmp_path / "data", register=REGISTER) as running:
        yield running


@pytest.fixture
def wire(broker, connect):
    opened = connect(broker.bootstrap)
    assert opened.create("t", tagwire_record_dialect=DIALECT).error_code == 0
    return opened


def produce(wire, data, topic="t", dialect=DIALECT, version=9):
    request = messages.ProduceRequest
    partition = request.PartitionProduceData(index=0, records=data)
    message = request(acks=-1, topic_data=[request.TopicProduceData(name=topic, partition_data=[partition])])
    say_dialect(message, dialect, request.api_key, version)
    return wire.ask(message, version).responses[0].partition_responses[0]


def fetch(wire, make, offset=0, dialect=DIALECT, **options):
    message = make.fetch("t", offset, **options)
    say_dialect(message, dialect, message.api_key, 12)
    return wire.ask(message, 12).responses[0].partitions[0]


def of_dialect(*rows, codec="none"):
    return write(rows, compression=codec, dialect=DIALECT)


def rows_of(data, dialect=None):
    return [
        (row.offset, row.key, row.value, list(row.headers), row.timestamp)
        for batch in read(data, dialect)
        for row in batch.records()
    ]


@pytest.mark.parametrize("codec", CODECS)
def test_what_its_clients_send_is_stored_and_served_as_it_is(wire, make, codec):
    rows = [Record(b"k", b"%d" % i, HEADERS[:i], timestamp=1000 - i) for i in range(3)]
    data = of_dialect(*rows, codec=codec)
    assert [produce(wire, data).base_offset for _ in range(2)] == [0, 3]
    answer = fetch(wire, make)
    assert dialect_of(answer) == DIALECT
    wanted = [(3 * n + i, b"k", b"%d" % i, HEADERS[:i], 1000 - i) for n in range(2) for i in range(3)]
    assert rows_of(answer.records, DIALECT) == wanted
    # All but the offsets, which stand outside the checksum.
    placed = bytearray(data)
    if codec == "none":
        assert bytes(answer.records)[: len(data)] == data
    else:
        assign_offsets(placed, 3, -1, DIALECT)
        assert bytes(answer.records)[len(data) :] == bytes(placed)
    assert rows_of(fetch(wire, make, offset=4).records, DIALECT)[-1] == wanted[-1]


@pytest.mark.parametrize("codec", CODECS)
def test_other_clients_send_and_get_record_batches(wire, make, codec):
    rows = [Record(b"k", b"%d" % i, NAMED[:i], timestamp=1000 - i) for i in range(3)]
    assert produce(wire, write(rows, compression=codec), dialect=None).error_code == 0
    assert produce(wire, of_dialect(Record(None, None, HEADERS, timestamp=5), codec=codec)).base_offset == 3
    as_kept = fetch(wire, make)
    assert rows_of(as_kept.records, DIALECT) == [
        *((i, b"k", b"%d" % i, HEADERS[:i], 1000 - i) for i in range(3)),
        (3, None, None, HEADERS, 5),
    ]
    bridged = fetch(wire, make, dialect=None)
    assert dialect_of(bridged) is None
    assert rows_of(bridged.records) == [
        *((i, b"k", b"%d" % i, NAMED[:i], 1000 - i) for i in range(3)),
        (3, None, None, NAMED, 5),
    ]
    assert {batch.compression for batch in read(bridged.records)} == {codec}
    assert wire.offset_at("t", 1000).offset == 0
    assert wire.offset_at("t", -1).offset == 4


REFUSED = [
    ([Record(None, b"v"), Record(None, b"v", [("unknown", b"x")])], r"record 1: .*'unknown'.*headers\.toml"),
    ([Record(None, b"v", [("7", b"x"), ("7", b"y")])], "record 0: .*twice"),
    ([Record(None, b"v", [("app.name", b"x"), ("1114000", b"y")])], "record 0: .*twice"),
    ([Record(None, b"v", [("7", None)])], "record 0: .*null"),
]


@pytest.mark.parametrize(("rows", "text"), REFUSED)
def test_what_cannot_be_bridged_is_refused_and_nothing_of_it_stored(wire, rows, text):
    outcome = produce(wire, write(rows), dialect=None)
    assert outcome.error_code == Error.INVALID_RECORD
    with pytest.raises(KafkaError, match=text):
        raise KafkaError(Error.INVALID_RECORD, outcome.error_message)
    assert wire.offset_at("t", -1).offset == 0


def test_a_batch_of_a_numbered_producer_is_refused(wire):
    data = write([Record(None, b"v")], producer_id=1, producer_epoch=0, base_sequence=0)
    outcome = produce(wire, data, dialect=None)
    assert (outcome.error_code, "idempotence" in outcome.error_message) == (Error.INVALID_RECORD, True)


def test_a_dialect_is_refused_where_the_topic_keeps_another_format(wire, make):
    wire.create("u")
    outcome = produce(wire, of_dialect(Record(None, b"v")), topic="u")
    assert outcome.error_code == Error.INVALID_RECORD
    assert outcome.error_message == "records of the dialect int-headers are sent; the topic keeps record batches"
    outcome = produce(wire, of_dialect(Record(None, b"v")), dialect="optional")
    assert "keeps those of int-headers" in outcome.error_message


def broken(change):
    data = bytearray(of_dialect(Record(b"k", b"v", HEADERS, timestamp=1)))
    change(data)
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", Error.INVALID_RECORD),
        (broken(lambda data: data.__setitem__(-1, 0)), Error.CORRUPT_MESSAGE),
        (of_dialect(Record(None, b"v"))[:-1], Error.CORRUPT_MESSAGE),
        (of_dialect(Record(None, b"v")) + b"\0" * 5, Error.CORRUPT_MESSAGE),
        (write([Record(None, b"v")]), Error.CORRUPT_MESSAGE),
        (write([Record(None, b"v")], dialect=DIALECT, timestamp_type="LogAppendTime"), Error.INVALID_RECORD),
        (of_dialect(Record(None, b"v" * 1_100_000)), Error.MESSAGE_TOO_LARGE),
    ],
)
def test_a_broken_message_set_is_refused(wire, data, error):
    assert produce(wire, data).error_code == error
    assert wire.offset_at("t", -1).offset == 0


@pytest.mark.parametrize("dialect", [DIALECT, None])
def test_more_records_in_one_than_objects_are_made_of_are_refused(wire, dialect):
    rows = [Record(None, b"")] * (MAX_RECORDS + 1)
    kept, refused = (write(rows[:count], compression="gzip", dialect=dialect) for count in (MAX_RECORDS, len(rows)))
    assert produce(wire, refused, dialect=dialect).error_code == Error.MESSAGE_TOO_LARGE
    assert produce(wire, kept, dialect=dialect).error_code == 0
    assert wire.offset_at("t", -1).offset == MAX_RECORDS


@pytest.mark.parametrize("codec", CODECS)
def test_a_time_that_nobody_writes_stops_no_reader(wire, make, codec):
    data = bytearray(of_dialect(Record(b"k", b"v", timestamp=1000)))
    data[18:26] = (-5).to_bytes(8, "big", signed=True)
    data[12:16] = crc32(data[16:]).to_bytes(4, "big")
    if codec != "none":
        old = next(read(data, DIALECT))
        data = bytearray(rewrite(old, old.records(), compression=codec))
    assert produce(wire, bytes(data)).error_code == 0
    produce(wire, of_dialect(Record(b"k", b"w", timestamp=1001)))
    told = [(0, b"k", b"v", [], -5), (1, b"k", b"w", [], 1001)]
    assert rows_of(fetch(wire, make).records, DIALECT) == told
    assert rows_of(fetch(wire, make, dialect=None).records) == told


def test_append_time_is_the_brokers_in_both_formats(broker, connect, make):
    wire = connect(broker.bootstrap)
    wire.create("t", tagwire_record_dialect=DIALECT, message_timestamp_type="LogAppendTime")
    stamps = [produce(wire, of_dialect(Record(None, b"v", timestamp=1), codec=codec)) for codec in ("none", "lz4")]
    stamps.append(produce(wire, write([Record(None, b"v", timestamp=1)] * 2), dialect=None))
    times = [stamps[0], stamps[1], stamps[2], stamps[2]]
    wanted = [(offset, outcome.log_append_time_ms) for offset, outcome in enumerate(times)]
    assert all(time > 1_000_000 for _, time in wanted)
    for dialect in (DIALECT, None):
        found = rows_of(fetch(wire, make, dialect=dialect).records, dialect)
        assert [(row[0], row[-1]) for row in found] == wanted


def test_the_dialect_outlives_restarts_and_crashes_and_cannot_be_changed(tmp_path, connect, make):
    data = of_dialect(Record(b"k", b"v", HEADERS, timestamp=1))
    with Broker(tmp_path) as broker:
        wire = connect(broker.bootstrap)
        wire.create("t", tagwire_record_dialect=DIALECT, segment_bytes="1024")
        for _ in range(60):
            assert produce(wire, data).error_code == 0
    metadata = tmp_path / "t-0" / "partition.metadata"
    assert read_dialect(metadata.read_bytes()) == DIALECT
    last = max((tmp_path / "t-0").glob("*.log"))
    for harm in (
        lambda: None,
        (tmp_path / ".kafka_cleanshutdown").unlink,
        lambda: last.write_bytes(last.read_bytes()[:-1]),
    ):
        harm()
        with Broker(tmp_path) as broker:
            wire = connect(broker.bootstrap)
            end = wire.offset_at("t", -1).offset
            found, offset = [], 0
            while offset < end:
                found += rows_of(fetch(wire, make, offset=offset).records, DIALECT)
                offset = found[-1][0] + 1
            assert [row[0] for row in found] == list(range(end))
    assert end == 59
    metadata.write_text(metadata.read_text().replace(DIALECT, "another"))
    with Broker(tmp_path) as broker:
        (offline,) = broker.stats()["offline"]
        assert "record dialect another" in offline["reason"]


def test_our_own_client_speaks_it(broker, wire):
    with Producer(broker.bootstrap, dialect=DIALECT, register=REGISTER) as producer:
        for number in range(5):
            producer.send("t", b"%d" % number, headers=[("app.name", b"ig"), (number, b"x")])
    options = {"stop_at_end": True}
    with Reader(broker.bootstrap, {("t", 0): EARLIEST}, dialect=DIALECT, **options) as reader:
        found = [(record.value, dict(record.headers)) for record in reader.records()]
    assert found == [(b"%d" % n, {n: b"x", 1_114_000: b"ig"}) for n in range(5)]
    with Reader(broker.bootstrap, {("t", 0): EARLIEST}, **options) as reader:
        found = [(record.value, dict(record.headers)) for record in reader.records()]
    assert found == [(b"%d" % n, {REGISTER.spelled(n): b"x", "app.name": b"ig"}) for n in range(5)]


def test_what_may_be_written_is_written_in_it(tmp_path, connect):
    """What stands in a message where a record batch says that it is of a transaction is its timestamp, or its text."""
    may_all = {"authorizer": "StandardAuthorizer", "allow_everyone_if_no_acl_found": True}
    with Broker(tmp_path / "data", register=REGISTER, **may_all) as broker:
        wire = connect(broker.bootstrap)
        assert wire.create("t", tagwire_record_dialect=DIALECT).error_code == 0
        assert produce(wire, of_dialect(Record(None, b"v", timestamp=-1))).error_code == 0


def test_librdkafka_writes_and_reads_it(broker, wire, make):
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
    refusals = []
    producer.produce("t", b"v", b"k", headers=[("app.name", b"ig"), ("7", b"")])
    producer.produce("t", b"w", on_delivery=lambda error, _: refusals.append(error))
    producer.flush(20)
    producer.produce("t", b"v", headers=[("nobody", b"x")], on_delivery=lambda error, _: refusals.append(error))
    producer.flush(20)
    assert [error and error.code() for error in refusals] == [None, Error.INVALID_RECORD]
    rows = rows_of(fetch(wire, make).records, DIALECT)
    assert [(key, value, headers) for _, key, value, headers, _ in rows] == [(b"k", b"v", HEADERS), (None, b"w", [])]
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.assign([confluent_kafka.TopicPartition("t", 0, 0)])
    found = consumer.consume(2, timeout=20)
    consumer.close()
    assert [(message.key(), message.value(), message.headers()) for message in found] == [
        (b"k", b"v", NAMED),
        (None, b"w", None),
    ]


def test_aiokafka_writes_and_reads_it(broker, wire):
    async def run():
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=broker.bootstrap, compression_type="gzip")
        await producer.start()
        await producer.send_and_wait("t", b"v", b"k", headers=NAMED)
        with pytest.raises(aiokafka.errors.KafkaError):
            await producer.send_and_wait("t", b"v", headers=[("nobody", b"x")])
        await producer.stop()
        consumer = aiokafka.AIOKafkaConsumer("t", bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest")
        await consumer.start()
        found = await asyncio.wait_for(consumer.getone(), 20)
        await consumer.stop()
        return found.key, found.value, list(found.headers)

    assert asyncio.run(run()) == (b"k", b"v", NAMED)


def test_a_config_file_names_the_files_of_the_register(tmp_path):
    (tmp_path / "headers.toml").write_text('space = "local"\n[[entries]]\nkey = 1_114_000\nname = "app.name"\n')
    config = tmp_path / "broker.toml"
    config.write_text('data = "data"\nregister = ["headers.toml"]\n')
    assert Settings(**read_config(config)).register.spelled(1_114_000) == "app.name"
    config.write_text('data = "data"\nregister = ["missing.toml"]\n')
    with pytest.raises(ConfigError, match=r"register: .*missing\.toml"):
        read_config(config)


def test_a_log_of_the_dialect_is_sound_to_whoever_checks_it_without_the_broker(tmp_path, connect):
    with Broker(tmp_path) as broker:
        wire = connect(broker.bootstrap)
        wire.create("t", tagwire_record_dialect=DIALECT, segment_bytes="3000", index_interval_bytes="300")
        for number in range(40):
            rows = [Record(b"k", b"v" * 60, HEADERS, timestamp=1000 + number + i) for i in range(3)]
            assert produce(wire, of_dialect(*rows, codec=CODECS[number % 5])).error_code == 0
    (files,) = [found for found in partitions(tmp_path, dialect=DIALECT) if found.topic == "t"]
    assert len(files.segments) > 2
    assert [str(fault) for fault in verify_partition(files)] == []
