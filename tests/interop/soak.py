"""A soak of the broker: `python tests/interop/soak.py --minutes 30`.

Mixed clients write and read while the broker is stopped, killed and started again. Then every acknowledged record has
to be there once and in order, no withdrawn one may be seen, and readers must have got them all. At last clients come
and go for a while: what they took of the broker (open files, tasks, memory) has to be given back.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import confluent_kafka
from broker_process import BrokerProcess
from confluent_kafka.admin import AdminClient, NewTopic
from soak_clients import (
    AiokafkaWriter,
    KafkaPythonReader,
    LibrdkafkaReader,
    LibrdkafkaWriter,
    Reader,
    SoakClient,
    TransactionalWriter,
    Writer,
)

TOPIC: Final = "soak"
WRITERS: Final = (LibrdkafkaWriter, TransactionalWriter, AiokafkaWriter)
READERS: Final = (LibrdkafkaReader, KafkaPythonReader)
RESTART_EVERY_S: Final = 8
COMING_AND_GOING: Final = 0.35
"""The part of the time that is for clients that come and go."""

SETTLE_S: Final = 20
MAX_GROWTH: Final = 3 << 20
"""By how many bytes memory may differ between two halves of the same work."""


DUTIES: Final = 2
"""How many tasks more may be seen at one moment than at another: the broker's own duties come and go."""


@dataclass(frozen=True)
class Held:
    """What a broker holds while it has no clients."""

    files: int
    tasks: int
    memory: int


def soak(folder: Path, seconds: float, say: Callable[[str], None] = print) -> None:
    """Raises AssertionError with what was lost, repeated or kept."""
    broker = BrokerProcess(folder)
    broker.start()
    try:
        bootstrap = broker.addresses["PLAIN"]
        client = AdminClient({"bootstrap.servers": bootstrap})
        topic = NewTopic(TOPIC, len(WRITERS), 1, config={"segment.bytes": "2000000"})
        client.create_topics([topic])[TOPIC].result(30)
        del client
        writers = [kind(bootstrap, TOPIC, number) for number, kind in enumerate(WRITERS)]
        readers = [kind(bootstrap, TOPIC) for kind in READERS]
        restarts = _restart_under_load(broker, [*writers, *readers], seconds * (1 - COMING_AND_GOING))
        for writer in writers:
            writer.stop()
        _check_log(bootstrap, writers)
        _check_readers(readers, writers)
        for reader in readers:
            reader.stop()
        sent = sum(len(writer.acknowledged) for writer in writers)
        withdrawn = sum(len(writer.withdrawn) for writer in writers)
        say(
            f"{sent} records acknowledged and {withdrawn} withdrawn over {restarts} restarts: each there once, in order"
        )
        broker.stop()
        broker.start()
        say(_check_leaks(broker, seconds * COMING_AND_GOING))
        broker.stop()
    finally:
        broker.kill()
    assert broker.unexpected() == []


def _restart_under_load(broker: BrokerProcess, clients: list[SoakClient], seconds: float) -> int:
    """How often it was ended: in order and by force in turns."""
    until = time.monotonic() + seconds
    for client in clients:
        client.start()
    restarts = 0
    while time.monotonic() + RESTART_EVERY_S < until:
        time.sleep(RESTART_EVERY_S)
        (broker.kill if restarts % 2 else broker.stop)()
        broker.start()
        restarts += 1
    time.sleep(max(0.0, until - time.monotonic()))
    return restarts


def _check_log(bootstrap: str, writers: list[Writer]) -> None:
    for writer in writers:
        found = _stored(bootstrap, writer.partition)
        name = f"{type(writer).__name__}: "
        assert found == sorted(set(found)), name + "records are repeated or out of order"
        assert writer.acknowledged, name + "nothing was acknowledged"
        lost = set(writer.acknowledged) - set(found)
        assert not lost, name + f"{len(lost)} acknowledged records are lost, {min(lost)} the first"
        seen = writer.withdrawn & set(found)
        assert not seen, name + f"{len(seen)} withdrawn records are seen, {min(seen)} the first"


def _stored(bootstrap: str, partition: int) -> list[int]:
    options = {"bootstrap.servers": bootstrap, "group.id": "check", "enable.auto.commit": False}
    consumer = confluent_kafka.Consumer({**options, "enable.partition.eof": True, "isolation.level": "read_committed"})
    consumer.assign([confluent_kafka.TopicPartition(TOPIC, partition, 0)])
    found: list[int] = []
    until = time.monotonic() + 60
    while time.monotonic() < until:
        for message in consumer.consume(10_000, 0.5):
            if message.error() is None:
                found.append(int(message.value()))
            elif message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF:
                consumer.close()
                return found
    raise AssertionError(f"partition {partition} was not read to its end")


def _check_readers(readers: list[Reader], writers: list[Writer]) -> None:
    for reader in readers:
        until = time.monotonic() + 60
        missing: dict[int, set[int]] = {}
        while time.monotonic() < until and reader.failure is None:
            missing = {w.partition: set(w.acknowledged) - reader.found.get(w.partition, set()) for w in writers}
            if not any(missing.values()):
                break
            time.sleep(0.2)
        counts = {partition: len(values) for partition, values in missing.items()}
        assert not any(counts.values()), f"{type(reader).__name__} has not got all records: {counts} are missing"


def _check_leaks(broker: BrokerProcess, seconds: float) -> str:
    """The first half fills what is kept on purpose; the second must not add to it."""
    held: list[Held] = []
    for _ in range(2):
        until = time.monotonic() + seconds / 2
        rounds = 0
        while time.monotonic() < until or not rounds:
            _come_and_go(broker.addresses["PLAIN"])
            rounds += 1
        held.append(_settled(broker))
    first, second = held
    shown = f"{rounds} rounds of clients that came and went: {first} before, {second} after"
    assert second.files <= first.files, shown
    assert second.tasks <= first.tasks + DUTIES, shown
    assert second.memory - first.memory <= MAX_GROWTH, shown
    return shown


def _come_and_go(bootstrap: str) -> None:
    clients: list[SoakClient] = [LibrdkafkaWriter(bootstrap, "guests", 0), LibrdkafkaReader(bootstrap, "guests")]
    clients += [AiokafkaWriter(bootstrap, "guests", 0), KafkaPythonReader(bootstrap, "guests")]
    host, _, port = bootstrap.rpartition(":")
    rude = [socket.create_connection((host, int(port))) for _ in range(20)]
    for number, connection in enumerate(rude):
        connection.sendall([b"", b"\0\0\0", b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 8][number % 4])
    for client in clients:
        client.start()
    time.sleep(1.5)
    for client in clients:
        client.stop()
    for connection in rude:
        connection.close()


def _settled(broker: BrokerProcess) -> Held:
    """What is held when nothing is given back any more."""
    before, until = None, time.monotonic() + SETTLE_S
    while time.monotonic() < until:
        held = _held(broker)
        if before is not None and (held.files, held.tasks) == (before.files, before.tasks):
            return held
        before = held
        time.sleep(1.5)
    raise AssertionError(f"the broker does not come to rest: {before}")


def _held(broker: BrokerProcess) -> Held:
    process = Path(f"/proc/{broker.process_id}")
    memory = int((process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return Held(len(os.listdir(process / "fd")), broker.tasks(), memory)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tagwire-soak-") as name:
        soak(Path(name), chosen.minutes * 60)
    return 0


if __name__ == "__main__":
    sys.exit(main())
