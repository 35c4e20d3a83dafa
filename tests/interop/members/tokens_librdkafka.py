"""A producer by confluent-kafka that comes in by an unsecured bearer token; what it does is told in
tests/interop/test_tokens_and_quotas.py."""

from __future__ import annotations

import sys
import time
from typing import Any

from confluent_kafka import Producer


def main(bootstrap: str, topic: str, milliseconds: int) -> None:
    throttled: list[float] = [0.0]
    refused: list[object] = []

    def delivered(error: Any, _: Any) -> None:
        if error is not None:
            refused.append(error)

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": "librdkafka",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "enable.sasl.oauthbearer.unsecure.jwt": True,
            "sasl.oauthbearer.config": "principal=alice",
            "throttle_cb": lambda event: throttled.append(event.throttle_time * 1000),
        }
    )
    sent, until = 0, time.monotonic() + milliseconds / 1000
    while time.monotonic() < until:
        producer.produce(topic, bytes(50_000 if sent < 3 else 10), on_delivery=delivered)
        assert producer.flush(20) == 0
        sent += 1
        time.sleep(0.1)
    assert not refused, refused
    print(round(max(throttled)), sent)


main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
