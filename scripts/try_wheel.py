"""Whether an installed tagwire works: kernels compiled, and a record through the broker, the client and Arrow.

python scripts/try_wheel.py
"""

from __future__ import annotations

import tagwire.kernel
from tagwire.broker import Broker
from tagwire.client import Admin, NewTopic, Producer, Reader, TopicPartition


def main() -> None:
    assert tagwire.kernel.compiled, f"{tagwire.__file__} has no compiled kernels"
    with Broker() as broker:
        with Admin(broker.bootstrap) as admin:
            admin.create_topics([NewTopic("t")])
        with Producer(broker.bootstrap, compression="lz4") as producer:
            producer.send("t", b"v", key=b"k", headers=[("h", b"1")])
        with Reader(broker.bootstrap, {TopicPartition("t", 0): 0}, stop_at_end=True) as reader:
            (batch,) = reader
    assert batch.to_pylist()[0]["headers"] == [{"key": "h", "value": b"1"}]
    print(f"{tagwire.__file__} works")


if __name__ == "__main__":
    main()
