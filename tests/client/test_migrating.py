"""docs/migrating.md has every setting of the other clients, and says of each what ours does with it."""

from __future__ import annotations

import ctypes
import inspect
import re
from pathlib import Path

import pytest

from tagwire.client.client import Client
from tagwire.client.config import _READ, ALIASES, parse
from tagwire.client.consuming.consumer_settings import ConsumerOptions
from tagwire.client.producing import ProducerOptions
from tagwire.client.property_names import _JAVA, _LIBRDKAFKA
from tagwire.client.security import SecurityOptions
from tagwire.client.security_properties import READ as SECURITY
from tagwire.errors import ConfigError

PAGE = (Path(__file__).parents[2] / "docs" / "migrating.md").read_text(encoding="utf-8")
PROPERTIES, _, AIOKAFKA = PAGE.partition("## aiokafka\n")

# The parameters of AIOKafkaProducer and AIOKafkaConsumer of aiokafka 0.14.
_AIOKAFKA = """
    acks api_version auto_commit_interval_ms auto_offset_reset bootstrap_servers check_crcs client_id client_rack
    compression_type connections_max_idle_ms consumer_timeout_ms enable_auto_commit enable_idempotence
    exclude_internal_topics fetch_max_bytes fetch_max_wait_ms fetch_min_bytes group_id group_instance_id
    heartbeat_interval_ms isolation_level key_deserializer key_serializer linger_ms loop max_batch_size
    max_partition_fetch_bytes max_poll_interval_ms max_poll_records max_request_size metadata_max_age_ms
    partition_assignment_strategy partitioner rebalance_timeout_ms request_timeout_ms retry_backoff_ms
    sasl_kerberos_domain_name sasl_kerberos_service_name sasl_mechanism sasl_oauth_token_provider sasl_plain_password
    sasl_plain_username security_protocol session_timeout_ms ssl_context topics transaction_timeout_ms transactional_id
    value_deserializer value_serializer
"""

JAVA, LIBRDKAFKA = frozenset(_JAVA.split()), frozenset(_LIBRDKAFKA.split())
ROW = re.compile(r"^\| ([a-z][\w., ]*) \| (J, L|J|L) \| (read|left alone|refused): (.+) \|$", re.MULTILINE)
TOLD = {name: (of, what) for names, of, what, _ in ROW.findall(PROPERTIES) for name in names.split(", ")}


def test_every_property_stands_in_one_row() -> None:
    names = [name for row in ROW.findall(PROPERTIES) for name in row[0].split(", ")]
    assert sorted(names) == sorted(JAVA | LIBRDKAFKA)


@pytest.mark.parametrize("name", sorted(TOLD))
def test_what_a_row_says_of_a_property_is_true(name: str) -> None:
    of, what = TOLD[name]
    assert of == ", ".join(letter for letter, known in (("J", JAVA), ("L", LIBRDKAFKA)) if name in known)
    is_read = name in _READ or name in SECURITY or name in ALIASES
    assert (what == "read") == is_read
    if not is_read:
        try:
            parse({"bootstrap.servers": "kafka-1:9092", name: "1"})
        except ConfigError:
            assert what == "refused"
        else:
            assert what == "left alone"


def test_every_option_that_the_page_names_is_one() -> None:
    options = {*ConsumerOptions.__annotations__, *ProducerOptions.__annotations__, *SecurityOptions.__annotations__}
    options |= {*inspect.signature(Client).parameters}
    calls = {"leave", "on_delivery", "stop_at_end"}
    named = set(re.findall(r"\b(\w+)=", re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL)))
    assert named <= options | calls


def test_every_argument_of_aiokafka_stands_in_one_row() -> None:
    rows = re.findall(r"^\| ([a-z][\w, ]*) \| ", AIOKAFKA, re.MULTILINE)
    names = [name for row in rows if row != "argument" for name in row.split(", ")]
    assert sorted(names) == sorted(_AIOKAFKA.split())


def test_every_property_of_librdkafka_is_known_as_its_own(tmp_path: Path) -> None:
    """By the table that librdkafka prints of itself."""
    library = ctypes.CDLL(pytest.importorskip("confluent_kafka.cimpl").__file__)
    system = ctypes.CDLL(None)
    system.fopen.restype = ctypes.c_void_p
    system.fclose.argtypes = library.rd_kafka_conf_properties_show.argtypes = [ctypes.c_void_p]
    file = system.fopen(bytes(tmp_path / "properties"), b"w")
    library.rd_kafka_conf_properties_show(file)
    system.fclose(file)
    names = set(re.findall(r"^([a-z]\S+) +\|", (tmp_path / "properties").read_text(encoding="utf-8"), re.MULTILINE))
    assert len(names) > 150
    assert names - LIBRDKAFKA == set()


def test_what_is_set_by_calls_of_c_is_not_what_a_misspelt_property_means() -> None:
    with pytest.raises(ConfigError, match=r"^ssl\.key: not supported$"):
        parse({"bootstrap.servers": "kafka-1:9092", "ssl.key": "1"})
