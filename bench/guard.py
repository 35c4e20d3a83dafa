"""Whether a row has fallen: two minutes of ratios in turns, against those that bench/guard.json keeps.

    make bench WHAT=guard
    python bench/guard.py --record      # after a change that is meant: keeps what it finds as the figures to come
    python bench/guard.py --widen       # then, once or twice: other runs of the same code belong to its spread

A ratio is how many times as fast a row is as its peer, or as what the machine does at least for the same work; both
take turns, so that what else the machine does meets both. Kept are the median of the rounds, and their quarters. A row
has fallen where its median is below the kept lower quarter by a tenth or more; it is named with how much. The status is
0 all the same, with --strict 1: what a busy machine says of speed fails no test.
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

import client  # noqa: E402
import client_producing  # noqa: E402
import codec  # noqa: E402
import cramjam  # noqa: E402
import records as on_records  # noqa: E402
from aiokafka.record.memory_records import MemoryRecords  # noqa: E402
from crc32c import crc32c  # noqa: E402
from rounds import arguments, sized  # noqa: E402

from tagwire import records  # noqa: E402

KEPT = HERE / "guard.json"
SECONDS = sized(120.0, 0.0)
LEAST_ROUNDS = sized(4, 1)
MOST_ROUNDS = 40
FALLEN = 0.9
TURN = sized(0.04, 0.0)  # seconds that a turn of processor work takes at least


@dataclass(frozen=True)
class Row:
    """Two that take turns: what is divided is the first's time by the second's.

    Attributes:
        is_cpu: whether processor time is measured: of work that waits for nothing.
    """

    name: str
    peer: Callable[[], object]
    ours: Callable[[], object]
    is_cpu: bool = True


def rows(stack: ExitStack) -> Iterator[Row]:
    """All of them. `stack` ends what they need."""
    yield from of_codec()
    yield from of_records()
    yield from of_client(stack)
    yield Row("import tagwire.broker, to Python's own start", python("pass"), python("import tagwire.broker"), False)
    yield Row("import tagwire.client, to Python's own start", python("pass"), python("import tagwire.client"), False)


def of_codec() -> Iterator[Row]:
    message = codec.metadata_response()
    data = message.encode(13)
    theirs: Any = codec.KafkaMetadata
    yield Row(
        "Metadata decoded, to kafka-python",
        lambda: theirs.decode(data, version=13),
        lambda: type(message).decode(data, 13),
    )
    other = codec.by_keyword(message, theirs, 13)
    yield Row("Metadata encoded, to kafka-python", lambda: other.encode(version=13), lambda: message.encode(13))
    fetch = codec.fetch_request()
    asked = fetch.encode(17)
    yield Row(
        "Fetch request decoded, to kafka-python",
        lambda: codec.KafkaFetch.decode(asked, version=17),
        lambda: type(fetch).decode(asked, 17),
    )


def of_records() -> Iterator[Row]:
    for headers in (0, 2):
        found = on_records.rows(headers)
        data = records.write(found)
        batch = records.to_arrow(data)
        named = f"{headers} headers"
        yield Row(
            f"batch to Arrow, {named}, to aiokafka",
            lambda data=data: on_records.iterate_aiokafka(data),
            lambda data=data: records.to_arrow(data),
        )
        yield Row(
            f"Arrow to batch, {named}, to aiokafka's builder",
            lambda found=found: on_records.build_aiokafka(found),
            lambda batch=batch: records.from_arrow(batch),
        )
        yield Row(
            f"Record objects read, {named}, to aiokafka",
            lambda data=data: on_records.touch_peer(MemoryRecords(data)),
            lambda data=data: on_records.touch_tagwire(data),
        )
        yield Row(
            f"Record objects written, {named}, to aiokafka's builder",
            lambda found=found: on_records.build_aiokafka(found),
            lambda found=found: records.write(found),
        )
    plain = bytes(data[61:])
    packed = bytes(cramjam.lz4.compress(plain))
    lz4 = records.write(found, compression="lz4")

    def checked() -> None:
        crc32c(lz4)
        cramjam.lz4.decompress(packed)
        records.to_arrow(data)

    yield Row("lz4 to Arrow, to uncompressed and codec", checked, lambda: records.to_arrow(lz4))

    def written() -> None:
        records.from_arrow(batch)
        cramjam.lz4.compress(plain)

    yield Row("Arrow to lz4, to uncompressed and codec", written, lambda: records.from_arrow(batch, compression="lz4"))


def of_client(stack: ExitStack) -> Iterator[Row]:
    client.RECORDS = sized(50_000, 1_000)
    bootstrap = stack.enter_context(client.broker())
    client.write_topic(bootstrap, "guard", 2)

    def read(how: Callable[[str, str], None]) -> Callable[[], None]:
        return lambda: how(bootstrap, "guard")

    def produce(how: Callable[[str, str, int, int], None]) -> Callable[[], None]:
        return lambda: how(bootstrap, f"made-{time.monotonic_ns()}", client.RECORDS, 2)

    yield Row("read as Arrow, to confluent-kafka", read(client.read_confluent), read(client.read_arrow), False)
    yield Row("read as objects, to confluent-kafka", read(client.read_confluent), read(client.read_objects), False)
    making = client_producing
    yield Row("send_arrow, to confluent-kafka", produce(making.produce_confluent), produce(making.produce_arrow), False)
    yield Row("send, to confluent-kafka", produce(making.produce_confluent), produce(making.produce_objects), False)


def python(code: str) -> Callable[[], object]:
    # Where bytecode may not be kept, each import would compile what it imports, and the row would tell that.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return lambda: subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def taken(work: Callable[[], object], *, is_cpu: bool) -> float:
    """Seconds of one, on the average of a turn."""
    clock = time.process_time if is_cpu else time.perf_counter
    gc.collect()
    started, times = clock(), 0
    while True:
        work()
        times += 1
        elapsed = clock() - started
        if not is_cpu or elapsed >= TURN:
            return elapsed / times


def ratios(found: list[Row], seconds: float) -> dict[str, list[float]]:
    """Of every round; each round takes all rows in turn. The first warms up, and does not count."""
    until = time.monotonic() + seconds
    kept: dict[str, list[float]] = {row.name: [] for row in found}
    for number in range(MOST_ROUNDS + 1):
        for row in found:
            peer, ours = taken(row.peer, is_cpu=row.is_cpu), taken(row.ours, is_cpu=row.is_cpu)
            if number or seconds <= 0:
                kept[row.name].append(peer / max(ours, 1e-9))
        print(f"\rround {number}, {max(until - time.monotonic(), 0):.0f} s left ", end="", file=sys.stderr, flush=True)
        if number >= LEAST_ROUNDS and time.monotonic() > until:
            break
    print("\r" + " " * 40 + "\r", end="", file=sys.stderr, flush=True)
    return kept


def spread(figures: list[float]) -> dict[str, float]:
    low, middle, high = statistics.quantiles(figures, n=4, method="inclusive") if len(figures) > 1 else figures * 3
    return {"low": round(low, 3), "median": round(middle, 3), "high": round(high, 3), "rounds": len(figures)}


def widened(before: dict[str, float] | None, now: dict[str, float]) -> dict[str, float]:
    """What two runs of the same code showed: quarters of rounds tell less than runs do of how far apart runs are."""
    if before is None:
        return now
    rounds = before["rounds"] + now["rounds"]
    median = (before["median"] * before["rounds"] + now["median"] * now["rounds"]) / rounds
    low, high = min(before["low"], now["low"]), max(before["high"], now["high"])
    return {"low": low, "median": round(median, 3), "high": high, "rounds": rounds}


def compare(now: dict[str, dict[str, float]], kept: dict[str, dict[str, float]]) -> list[str]:
    """Prints each row beside what is kept of it; those that have fallen, each with by how much."""
    fallen = []
    print(f"  {'times as fast':58} {'kept':>8} {'low..high':>16} {'now':>8} {'low..high':>16}")
    for name, figures in now.items():
        before = kept.get(name)
        between = f"{figures['low']:.2f}..{figures['high']:.2f}"
        if before is None:
            print(f"  {name:58} {'-':>8} {'':16} {figures['median']:8.2f} {between:>16}  new")
            continue
        is_fallen = figures["median"] < before["low"] * FALLEN
        change = figures["median"] / before["median"] - 1
        was = f"{before['low']:.2f}..{before['high']:.2f}"
        said = f"FELL by {-change:.0%}" if is_fallen else ""
        print(f"  {name:58} {before['median']:8.2f} {was:>16} {figures['median']:8.2f} {between:>16}  {said}".rstrip())
        if is_fallen:
            fallen.append(f"{name}: {before['median']:.2f} before, {figures['median']:.2f} now, {-change:.0%} less")
    return fallen


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--record", action="store_true", help="keep what is found")
    parser.add_argument("--widen", action="store_true", help="add what is found to what is kept")
    parser.add_argument("--strict", action="store_true", help="end with status 1 where a row has fallen")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    given = parser.parse_args()
    with ExitStack() as stack:
        now = {name: spread(figures) for name, figures in ratios(list(rows(stack)), given.seconds).items()}
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    fallen = compare(now, kept)
    print(f"{len(fallen)} of {len(now)} rows have fallen" + "".join(f"\n  {each}" for each in fallen))
    if given.widen:
        now = {name: widened(kept.get(name), figures) for name, figures in now.items()}
    if given.record or given.widen:
        KEPT.write_text(json.dumps(now, indent=1) + "\n")
    if fallen and given.strict:
        sys.exit(1)


if __name__ == "__main__":
    main()
