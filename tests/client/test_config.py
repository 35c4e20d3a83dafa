"""Kafka's client properties: what is read, what is refused, what is left alone."""

from __future__ import annotations

import pytest

from tagwire.broker import Broker
from tagwire.client import Client, Producer
from tagwire.client.config import FetchSettings, ProduceSettings, parse
from tagwire.errors import ConfigError

BOOTSTRAP = {"bootstrap.servers": "a:1,b:2"}


def test_nothing_but_addresses_gives_the_defaults() -> None:
    settings = parse(BOOTSTRAP)
    assert (settings.bootstrap, settings.client_id, settings.timeout) == ("a:1,b:2", "tagwire", 30.0)
    assert settings.fetch == FetchSettings()
    assert settings.produce == ProduceSettings()


def test_every_property_that_is_read_sets_what_it_names() -> None:
    settings = parse(
        {
            **BOOTSTRAP,
            "client.id": "job",
            "request.timeout.ms": "1500",
            "fetch.max.bytes": "1000",
            "max.partition.fetch.bytes": " 900 ",
            "fetch.max.wait.ms": "0",
            "fetch.min.bytes": "2",
            "isolation.level": "READ_COMMITTED",
            "acks": "1",
            "compression.type": "zstd",
            "batch.size": "5000",
            "linger.ms": "250",
            "retries": "3",
            "delivery.timeout.ms": "60000",
        }
    )
    assert (settings.client_id, settings.timeout) == ("job", 1.5)
    assert settings.fetch == FetchSettings(
        max_bytes=1000, max_partition_bytes=900, max_wait_ms=0, min_bytes=2, isolation="read_committed"
    )
    assert settings.produce == ProduceSettings(
        acks=1, compression="zstd", batch_bytes=5000, linger=0.25, retries=3, timeout=60.0
    )


def test_how_old_metadata_may_be_is_read_for_who_reads_and_for_who_writes() -> None:
    settings = parse({**BOOTSTRAP, "metadata.max.age.ms": "1500", "metadata.max.idle.ms": "5000"})
    assert settings.fetch == FetchSettings(metadata_max_age=1.5)
    assert settings.produce == ProduceSettings(metadata_max_age=1.5, metadata_max_idle=5.0)
    with pytest.raises(ConfigError, match=r"metadata\.max\.idle\.ms"):
        parse({**BOOTSTRAP, "metadata.max.idle.ms": "4999"})  # as Kafka's ProducerConfig


def test_who_says_what_is_done_with_is_read() -> None:
    assert parse(BOOTSTRAP).consume.auto_offset_store
    assert not parse({**BOOTSTRAP, "enable.auto.offset.store": "false"}).consume.auto_offset_store


def test_what_a_producer_promises_is_read() -> None:
    properties = {
        "enable.idempotence": "True",
        "buffer.memory": "5000000000",
        "max.block.ms": "100",
        "max.in.flight.requests.per.connection": "1000",
        "transactional.id": "mover",
        "transaction.timeout.ms": "1500",
    }
    assert parse({**BOOTSTRAP, **properties}).produce == ProduceSettings(
        idempotence=True,
        buffer_memory=5_000_000_000,
        max_block=0.1,
        in_flight=5,
        transactional_id="mover",
        transaction_timeout=1.5,
    )


def test_a_client_can_be_made_of_properties() -> None:
    client = Client.from_properties({**BOOTSTRAP, "request.timeout.ms": "1500", "acks": "0"})
    assert (client.timeout, client.produce_settings.acks) == (1.5, 0)


def test_fetch_sizes_beyond_what_one_frame_may_have_mean_the_most_there_is() -> None:
    assert parse({**BOOTSTRAP, "fetch.max.bytes": "2147483647"}).fetch.max_bytes == 128 * 1024 * 1024


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("reconnect.backoff.ms", "1"),
        ("isolation.level", "read_uncommitted"),
    ],
)
def test_what_changes_nothing_is_accepted(name: str, value: str) -> None:
    assert parse({**BOOTSTRAP, name: value}) == parse(BOOTSTRAP)


MISSPELT = [
    ("secruity.protocol", "security.protocol"),
    ("acsk", "acks"),
    ("ack", "acks"),
    ("debgu", "debug"),
    ("bootstrap.server", "bootstrap.servers"),
    ("compresion.type", "compression.type"),
    ("Isolation.Level", "isolation.level"),
    ("sasl.mechanismus", "sasl.mechanisms"),
    ("enable_idempotence", "enable.idempotence"),
    ("ssl.truststore.locaton", "ssl.truststore.location"),
    ("statistics.intervals.ms", "statistics.interval.ms"),
]


@pytest.mark.parametrize(("name", "meant"), MISSPELT)
def test_a_misspelt_property_is_refused_with_the_one_that_was_meant(name: str, meant: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse({**BOOTSTRAP, name: "hunter2"})
    assert str(caught.value) == f"{name}: no property of a Kafka client; {meant} is one"


@pytest.mark.parametrize(
    "name", ["statistics.interval.ms", "queued.min.messages", "default.api.timeout.ms", "log_level"]
)
def test_what_another_client_reads_is_left_alone_without_a_word(name: str, caplog: pytest.LogCaptureFixture) -> None:
    assert parse({**BOOTSTRAP, name: "1"}) == parse(BOOTSTRAP)
    assert not caplog.records


def test_what_users_name_themselves_for_kafkas_metrics_is_known(caplog: pytest.LogCaptureFixture) -> None:
    parse({**BOOTSTRAP, "metrics.context.shop": "north", "metrics.context.group.id": "g"})
    assert not caplog.records


def test_a_property_that_nobody_knows_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        assert parse({**BOOTSTRAP, "shop.name": "hunter2"}) == parse(BOOTSTRAP)
    assert [record.getMessage() for record in caplog.records] == [
        "shop.name: no Kafka client knows this property, and it changes nothing"
    ]


REFUSED = [
    ("isolation.level", "serializable", "allowed is read_uncommitted or read_committed"),
    ("enable.idempotence", "yes", "enable.idempotence=yes: allowed is true or false"),
    ("ssl.truststore.location", "/x.jks", "only PEM files"),
    ("ssl.endpoint.identification.algorithm", "ldap", "allowed is https, or nothing"),
    ("security.providers", "x", "not supported"),
    ("sasl.kerberos.kinit.cmd", "x", "not supported"),
    ("transaction.timeout.ms", "0", "a whole number from 1"),
    ("max.in.flight.requests.per.connection", "0", "a whole number from 1"),
    ("acks", "2", "acks=2: allowed is all, 0 or 1"),
    ("compression.type", "brotli", "compression.type=brotli: allowed is none, gzip"),
    ("request.timeout.ms", "0", "a whole number from 1"),
    ("request.timeout.ms", "soon", "a whole number from 1"),
    ("batch.size", "-1", "a whole number from 0"),
    ("linger.ms", "-1.5", "a number from 0"),
    ("retries", "2147483648", "to 2147483647"),
    ("fetch.min.bytes", "٣", "a whole number from 0"),
    ("bootstrap.servers", "nowhere", "HOST:PORT,HOST:PORT"),
    ("max.block.ms", "9223372036854775808", "a whole number from 0 to 9223372036854775807"),
    ("transaction.two.phase.commit.enable", "true", "brokers would abort a prepared transaction"),
    ("enable.gapless.guarantee", "true", "those after it are sent"),
]


@pytest.mark.parametrize(("name", "value", "says"), REFUSED)
def test_a_wrong_value_is_refused_by_name(name: str, value: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse({**BOOTSTRAP, name: value})
    assert name in str(caught.value)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("max.block.ms", "max_block"),
        ("metadata.max.age.ms", "metadata_max_age"),
        ("metadata.max.idle.ms", "metadata_max_idle"),
        ("partitioner.availability.timeout.ms", "availability_timeout"),
        ("linger.ms", "linger"),
    ],
)
def test_the_largest_number_of_javas_means_the_longest_time_there_is(name: str, field: str) -> None:
    settings = parse({**BOOTSTRAP, name: str(2**63 - 1)})
    assert getattr(settings.produce, field) == 2_147_483.647


def test_a_batch_size_of_nothing_makes_each_record_a_batch() -> None:
    with Broker() as broker, Producer({"bootstrap.servers": broker.bootstrap, "batch.size": "0"}) as producer:
        producer.send("flights", b"1", partition=0)
        producer.send("flights", b"2", partition=0)
        producer.flush()
        total = producer.metrics()["producer-metrics"]
        assert total["batch-size-avg"] < 100
        assert total["record-send-total"] == 2


@pytest.mark.parametrize(("given", "level"), [("-1", None), ("1", 1), ("9", None), ("12", 12), ("17", 12)])
def test_lz4s_levels_are_javas(given: str, level: int | None) -> None:
    assert parse({**BOOTSTRAP, "compression.lz4.level": given}).produce.lz4_level == level
    with pytest.raises(ConfigError, match=r"compression\.lz4\.level=18: allowed is a whole number"):
        parse({**BOOTSTRAP, "compression.lz4.level": "18"})


@pytest.mark.parametrize("value", ["false", "False"])
def test_a_guarantee_that_is_not_asked_for_is_not_refused(value: str) -> None:
    names = ("transaction.two.phase.commit.enable", "enable.gapless.guarantee")
    assert parse({**BOOTSTRAP, **dict.fromkeys(names, value)}) == parse(BOOTSTRAP)


LOGIN = 'x.PlainLoginModule required username="alice" password="hunter2";'
SAME = [
    ({"buffer.memory": "2048"}, {"queue.buffering.max.kbytes": "2"}, {"queue.buffering.max.kbytes": "3"}),
    (
        {"partitioner.class": "org.apache.kafka.clients.producer.RoundRobinPartitioner"},
        {"partitioner": "round_robin"},
        {"partitioner": "consistent"},
    ),
    ({"sasl.mechanism": "plain"}, {"sasl.mechanisms": "PLAIN"}, {"sasl.mechanisms": "SCRAM-SHA-512"}),
    (
        {"ssl.truststore.location": "/a.pem", "ssl.truststore.type": "PEM"},
        {"ssl.ca.location": "/a.pem"},
        {"ssl.ca.location": "/b.pem"},
    ),
    ({"sasl.jaas.config": LOGIN}, {"sasl.password": "hunter2"}, {"sasl.password": "hunter3"}),
]


@pytest.mark.parametrize(("one", "same", "other"), SAME)
def test_two_properties_that_set_the_same_may_not_do_so_differently(
    one: dict[str, str], same: dict[str, str], other: dict[str, str]
) -> None:
    assert parse({**BOOTSTRAP, **one, **same}) == parse({**BOOTSTRAP, **one}) == parse({**BOOTSTRAP, **same, **one})
    for properties in ({**one, **other}, {**other, **one}):
        with pytest.raises(ConfigError, match=r"sets the same as .*, and differently") as caught:
            parse({**BOOTSTRAP, **properties})
        assert "hunter" not in str(caught.value)


def test_a_password_is_not_told() -> None:
    with pytest.raises(ConfigError) as caught:
        Client.from_properties({**BOOTSTRAP, "ssl.key.password": "hunter2"})
    assert "hunter2" not in str(caught.value)


def test_a_login_is_not_told_either() -> None:
    login = 'org.apache.kafka.common.security.plain.OAuthLoginModule required username="u" password="hunter2";'
    with pytest.raises(ConfigError) as caught:
        parse({**BOOTSTRAP, "sasl.jaas.config": login})
    assert "hunter2" not in str(caught.value)


JAAS = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="al\\"ice" password="hunter2";'
SECURITY = [
    (
        {"security.protocol": "sasl_ssl", "sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": JAAS},
        {
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_plain_username": 'al"ice',
            "sasl_plain_password": "hunter2",
        },
    ),
    (
        {"security.protocol": "SASL_SSL", "sasl.mechanisms": "plain", "sasl.username": "alice"},
        {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_plain_username": "alice"},
    ),
    (
        {"security.protocol": "SSL", "ssl.ca.location": "/ca.pem", "ssl.endpoint.identification.algorithm": ""},
        {"security_protocol": "SSL", "ssl_cafile": "/ca.pem", "ssl_check_hostname": False},
    ),
    (
        {"ssl.keystore.location": "/me.pem", "ssl.keystore.type": "PEM", "ssl.key.password": "hunter2"},
        {"ssl_certfile": "/me.pem", "ssl_password": "hunter2"},
    ),
]


@pytest.mark.parametrize(("properties", "options"), SECURITY)
def test_properties_of_other_clients_become_our_options(properties: dict[str, str], options: dict[str, object]) -> None:
    settings = parse({**BOOTSTRAP, **properties})
    assert settings.security == options
    assert "hunter2" not in repr(settings)


def test_addresses_must_be_given() -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.servers: missing"):
        parse({})
