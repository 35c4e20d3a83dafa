"""A consumer in a group.

Two members share the partitions of a topic and read them as Arrow batches. Each commits what it has processed, so that
the group goes on there when a member has left: every record is processed, none twice.
"""

import threading
from collections import Counter

import pyarrow.compute as pc

from tagwire.broker import Broker
from tagwire.client import Admin, Consumer, NewTopic, Producer, RebalanceListener

RECORDS = 10_000
AIRPORTS = (b"EWR", b"JFK", b"LGA")


class Told(RebalanceListener):
    def __init__(self, name: str, has_half: threading.Event) -> None:
        self.name = name
        self.has_half = has_half

    def on_partitions_assigned(self, partitions):
        print(self.name, "member has got", *partitions)
        if len(partitions) == 3:
            self.has_half.set()

    def on_partitions_revoked(self, partitions):
        print(self.name, "member gives back", *partitions)


def count(bootstrap: str, departures: Counter, told: Told, everything_is_counted: threading.Event) -> None:
    """Counts departures by airport, as a member of the group, until all are counted."""
    with Consumer(
        bootstrap,
        group="statistics",
        offset_reset="earliest",
        auto_commit=False,
        assignors="range",
        heartbeat_interval=0.2,
    ) as consumer:
        consumer.subscribe("flights", told)
        while not everything_is_counted.is_set():
            batch = consumer.poll_batch(timeout=0.1)
            if batch is not None:
                for found in pc.value_counts(batch["key"]).to_pylist():
                    departures[found["values"]] += found["counts"]
                consumer.commit()


with Broker() as broker, Admin(broker.bootstrap) as admin:
    admin.create_topics([NewTopic("flights", num_partitions=6)])
    counted = {"first": Counter(), "second": Counter()}
    has_half = [threading.Event() for _ in counted]
    everything_is_counted = threading.Event()
    members = [
        threading.Thread(target=count, args=(broker.bootstrap, departures, Told(name, half), everything_is_counted))
        for (name, departures), half in zip(counted.items(), has_half)
    ]
    for member in members:
        member.start()
    try:
        assert all(half.wait(60) for half in has_half), "each member has half of the partitions"
        with Producer(broker.bootstrap) as producer:
            for number in range(RECORDS):
                producer.send("flights", b"departed", key=AIRPORTS[number % 3], partition=number % 6)
        assert any(
            sum(departures.total() for departures in counted.values()) == RECORDS or everything_is_counted.wait(0.1)
            for _ in range(600)
        ), "every record is counted"
    finally:
        everything_is_counted.set()
        for member in members:
            member.join()

    first, second = counted.values()
    (lag,) = admin.group_lags("statistics")
    print(f"{first.total():,} and {second.total():,} departures, {lag.lag} left")
    assert first + second == Counter({b"EWR": 3334, b"JFK": 3333, b"LGA": 3333})
    assert lag.lag == 0
