"""Security options stand on whatever makes a client, for threads and for tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tagwire.broker import Broker
from tagwire.client import NewTopic
from tagwire.errors import AuthenticationError, ConfigError

from .faces import THREADS, Face, tasks

PASSWORD = "hunter2"
LOGIN = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "SCRAM-SHA-256",
    "sasl_plain_username": "alice",
    "sasl_plain_password": PASSWORD,
}


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    data: Path = tmp_path_factory.mktemp("guarded")
    with Broker(data, sasl=["SCRAM-SHA-256"], users={"alice": PASSWORD}) as broker:
        yield broker.bootstrap


@pytest.fixture(params=["threads", "tasks"])
def face(request: pytest.FixtureRequest) -> Iterator[Face]:
    if request.param == "threads":
        yield THREADS
    else:
        with tasks("tasks", asyncio.new_event_loop) as face:
            yield face


def test_each_logs_in_by_its_own_options(bootstrap: str, face: Face) -> None:
    topic = f"by-{face.name}"
    with face.admin(bootstrap, **LOGIN) as admin:
        admin.create_topics([NewTopic(topic)])
    with face.producer(bootstrap, acks="all", timeout=9, **LOGIN) as producer:
        assert producer.send(topic, b"value").result(9).offset == 0
    with face.reader(bootstrap, topic, stop_at_end=True, **LOGIN) as reader:
        assert [record.value for record in reader.records()] == [b"value"]
    with face.consumer(bootstrap, group=topic, offset_reset="earliest", **LOGIN) as consumer:
        consumer.subscribe(topic)
        assert [record.value for record in consumer.consume(1, 9)] == [b"value"]


def test_options_come_before_properties(bootstrap: str, face: Face) -> None:
    properties = {"bootstrap.servers": bootstrap, "sasl.password": "wrong", "sasl.username": "alice"}
    with face.admin(properties, **LOGIN) as admin:
        admin.describe_cluster()


MAKERS: list[tuple[str, Callable[..., Any]]] = [
    ("admin", lambda face, client, **options: face.admin(client, **options)),
    ("producer", lambda face, client, **options: face.producer(client, **options)),
    ("reader", lambda face, client, **options: face.reader(client, "t", **options)),
    ("consumer", lambda face, client, **options: face.consumer(client, **options)),
]


@pytest.mark.parametrize(("name", "make"), MAKERS, ids=[name for name, _ in MAKERS])
def test_a_client_that_is_given_has_its_own(face: Face, name: str, make: Callable[..., Any]) -> None:
    with face.client("127.0.0.1:9") as client, pytest.raises(ConfigError) as caught:
        make(face, client, sasl_plain_password=PASSWORD)
    said = str(caught.value)
    assert said.startswith("sasl_plain_password: has no effect beside a client; give it to the ")
    assert PASSWORD not in said


@pytest.mark.parametrize(("name", "make"), MAKERS, ids=[name for name, _ in MAKERS])
def test_a_misspelt_option_is_told_with_the_one_that_is_near(face: Face, name: str, make: Callable[..., Any]) -> None:
    with pytest.raises(ConfigError, match=r"sasl_plain_pasword: no such option; .*sasl_plain_password") as caught:
        make(face, "127.0.0.1:9", sasl_plain_pasword=PASSWORD)
    assert PASSWORD not in str(caught.value)


def test_a_wrong_password_is_told_of_without_it(bootstrap: str, face: Face) -> None:
    login = {**LOGIN, "sasl_plain_password": "hunter3"}
    with face.admin(bootstrap, **login) as admin, pytest.raises(AuthenticationError) as caught:
        admin.describe_cluster()
    assert "hunter3" not in f"{caught.value} {caught.value!r}"
