"""Claim: `tagwire lag` tells how far 1,000 groups are behind in less than a second, Python's start included.

    make bench WHAT=lag

Beside it, on the same embedded broker and in turns, what Apache Kafka's kafka-consumer-groups takes to describe all
groups; it is left out where neither Java nor its jars are there. Both print a row for each of 3,000 partitions, which
is checked.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from rounds import alternate, arguments, sized

sys.path.insert(0, str(Path(__file__).parent.parent / "scripts"))

from kafka_jars import MavenError, classpath, kafka

from tagwire.broker import Broker
from tagwire.client import Admin, NewTopic, Producer

GROUPS = sized(1000, 10)
TOPICS = sized(10, 2)
PARTITIONS = 3
RECORDS = 20
ROUNDS = sized(7, 1)
RELEASE = "4.3.1"


def fill(bootstrap: str) -> None:
    """Groups that have committed in each partition of a topic, and are behind."""
    topics = [f"topic-{number}" for number in range(TOPICS)]
    with Admin(bootstrap) as admin:
        admin.create_topics([NewTopic(topic, num_partitions=PARTITIONS) for topic in topics])
        with Producer(bootstrap) as producer:
            for number in range(RECORDS * PARTITIONS * TOPICS):
                producer.send(topics[number % TOPICS], b"v", partition=number // TOPICS % PARTITIONS)
        for number in range(GROUPS):
            topic = topics[number % TOPICS]
            admin.alter_group_offsets(f"group-{number}", {(topic, index): index for index in range(PARTITIONS)})


def told(command: Sequence[str]) -> Callable[[], None]:
    """Runs a command that has to print a line for each partition of each group."""

    def run() -> None:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        lines = sum(line.startswith("group-") for line in ran.stdout.splitlines())
        if lines != GROUPS * PARTITIONS:
            raise RuntimeError(f"{command[0]} told of {lines} partitions: {ran.stderr[-500:]}")

    return run


def peer(bootstrap: str) -> list[str] | None:
    """Kafka's own command; None where it cannot be run."""
    if shutil.which("java") is None:
        return None
    try:
        # The folder that the broker's bench runs Kafka from.
        jars = classpath(
            f"broker-and-tools-{RELEASE}", [kafka("kafka_2.13", RELEASE), kafka("kafka-tools", RELEASE)], []
        )
    except MavenError as error:
        print(f"without kafka-consumer-groups: {error}", file=sys.stderr)
        return None
    tool = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    path = ":".join(map(str, jars))
    return ["java", "-cp", path, tool, "--bootstrap-server", bootstrap, "--describe", "--all-groups"]


def main() -> None:
    smallest = arguments(__doc__).parse_args().smallest
    with Broker(fsync="never") as broker:
        fill(broker.bootstrap)
        tagwire = [sys.executable, "-m", "tagwire", "lag", "--bootstrap", broker.bootstrap]
        contenders = {"tagwire lag": told(tagwire)}
        if not smallest and (java := peer(broker.bootstrap)) is not None:
            contenders["kafka-consumer-groups"] = told(java)
        timings = alternate(contenders, rounds=ROUNDS)
    print(f"seconds to tell of {GROUPS:,} groups, {PARTITIONS} partitions each; {ROUNDS} rounds")
    print(f"  {'':24} {'median':>8} {'min..max':>14}")
    for timing in timings:
        spread = f"{min(timing.seconds):.2f}..{max(timing.seconds):.2f}"
        print(f"  {timing.name:24} {timing.median:8.2f} {spread:>14}")
    if len(timings) > 1:
        ours, theirs = timings
        ratio = median(java / python for python, java in zip(ours.seconds, theirs.seconds))
        print(f"  the peer takes {ratio:.1f} times as long (median of the rounds' ratios)")


if __name__ == "__main__":
    main()
