"""What tests/interop/test_acl_clients.py tells, by confluent-kafka; what becomes of each is printed."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer

SECONDS = 30.0


def main(bootstrap: str, user: str, password: str) -> None:
    login = {
        "bootstrap.servers": bootstrap,
        "client.id": "librdkafka",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": password,
    }

    def send(producer: Any, topic: str) -> None:
        refused = []
        producer.produce(topic, b"v", on_delivery=lambda error, _: refused.append(error))
        assert producer.flush(SECONDS) == 0
        if refused[0] is not None:
            raise KafkaException(refused[0])

    def fetch(topic: str, group: str) -> None:
        consumer = Consumer({**login, "group.id": group, "auto.offset.reset": "earliest"})
        try:
            consumer.subscribe([topic])
            until = time.monotonic() + SECONDS
            while time.monotonic() < until:
                found = consumer.poll(1)
                if found is not None and found.error() is not None:
                    raise KafkaException(found.error())
                if found is not None:
                    return
            raise TimeoutError(group)
        finally:
            consumer.close()

    def transact(transactional_id: str, topic: str) -> None:
        producer = Producer({**login, "transactional.id": transactional_id})
        producer.init_transactions(SECONDS)
        producer.begin_transaction()
        send(producer, topic)
        producer.commit_transaction(SECONDS)

    def say(what: str, call: Callable[..., None], *given: Any) -> None:
        try:
            call(*given)
        except KafkaException as error:
            print(what, error.args[0].name())
        else:
            print(what, "NONE")

    say("allowed-topic", send, Producer(login), "shop.orders")
    say("denied-topic", send, Producer(login), "shop.secret")
    say("unnamed-topic", send, Producer(login), "other")
    say("allowed-group", fetch, "shop.orders", "shop.readers")
    say("denied-group", fetch, "shop.orders", "others")
    say("denied-read", fetch, "shop.secret", "shop.readers-2")
    say("allowed-transaction", transact, "shop.tx", "shop.orders")
    say("denied-transaction", transact, "others", "shop.orders")


main(*sys.argv[1:4])
