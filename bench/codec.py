"""Claim: messages decode and encode several times faster than with PyPI's kio and kafka-python.   make bench WHAT=codec

The same bytes for all, one call a message. All three decode eagerly: when the call returns, every element has been
validated and stands as an object of its own, which a walk over each contender's result checks before the clock starts.
Encoding starts from objects built by keyword before the clock starts; nothing is memoised, and all must write the same
bytes.
"""

from __future__ import annotations

import gc
import io
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pyarrow as pa
from kafka.protocol.consumer import FetchRequest as KafkaFetch
from kafka.protocol.metadata import ApiVersionsResponse as KafkaApiVersions
from kafka.protocol.metadata import MetadataResponse as KafkaMetadata
from rounds import alternate, arguments, sized, table

from tagwire import messages
from tagwire.codec import MessageObject, Structure
from tagwire.codec.arrow_writing import object_of
from tagwire.kernel import compiled

try:
    from kio.schema.api_versions.v4.response import ApiVersionsResponse as KioApiVersions
    from kio.schema.fetch.v17.request import FetchRequest as KioFetch
    from kio.schema.metadata.v13.response import MetadataResponse as KioMetadata
    from kio.serial import entity_reader, entity_writer
except ModuleNotFoundError:  # it is installed by `make bench`
    KioApiVersions = KioFetch = KioMetadata = None

# Fewer rounds for a quick look: ROUNDS=3 make bench WHAT=codec
ROUNDS = sized(int(os.environ.get("ROUNDS", "11")), 1)
GROWTH = sized(80_000, 800)
METADATA, SHORT, COLUMN = sized((20, 2000, 20_000), (1, 10, 100))


def metadata_response() -> messages.MetadataResponse:
    """200 topics x 10 partitions x 3 replicas."""
    kind = messages.MetadataResponse
    return kind(
        cluster_id="cluster-1",
        controller_id=1,
        brokers=[
            kind.MetadataResponseBroker(node_id=i, host=f"broker-{i}.example.com", port=9092, rack=f"rack-{i}")
            for i in range(3)
        ],
        topics=[
            kind.MetadataResponseTopic(
                name=f"topic-name-{topic}",
                topic_id=UUID(int=(topic + 1) << 64 | 7),
                partitions=[
                    kind.MetadataResponsePartition(
                        partition_index=number,
                        leader_id=number % 3,
                        leader_epoch=5,
                        replica_nodes=[0, 1, 2],
                        isr_nodes=[0, 1, 2],
                        offline_replicas=[],
                    )
                    for number in range(10)
                ],
            )
            for topic in range(200)
        ],
    )


def fetch_request() -> messages.FetchRequest:
    """20 partitions of 4 topics."""
    kind = messages.FetchRequest
    return kind(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=52428800,
        topics=[
            kind.FetchTopic(
                topic_id=UUID(int=(topic + 1) << 64 | 7),
                partitions=[
                    kind.FetchPartition(
                        partition=number,
                        current_leader_epoch=5,
                        fetch_offset=1000 + number,
                        log_start_offset=-1,
                        partition_max_bytes=1048576,
                    )
                    for number in range(5)
                ],
            )
            for topic in range(4)
        ],
    )


def api_versions_response() -> messages.ApiVersionsResponse:
    """90 keys."""
    kind = messages.ApiVersionsResponse
    return kind(api_keys=[kind.ApiVersion(api_key=key, min_version=0, max_version=key % 13) for key in range(90)])


def elements(value: object) -> int:
    """How many scalars stand below `value`, whatever library made it."""
    if isinstance(value, list | tuple):
        return sum(map(elements, value))
    kind = type(value)
    if hasattr(kind, "__dataclass_fields__"):
        return sum(elements(getattr(value, name)) for name in kind.__dataclass_fields__)
    if isinstance(names := getattr(kind, "_fields", getattr(kind, "fields", None)), tuple | dict):
        return sum(elements(getattr(value, name)) for name in names)
    return 1


def by_keyword(value: Any, kind: Any, version: int) -> Any:
    """tagwire's object as one of kafka-python's, built by keyword."""
    if isinstance(value, list):
        return [by_keyword(item, kind, version) for item in value]
    if not isinstance(value, Structure):
        return value
    mine = kind if isinstance(value, MessageObject) else getattr(kind, type(value).__name__)
    default = type(value)()
    given = {
        name: getattr(value, name) for name in type(value)._fields if getattr(value, name) != getattr(default, name)
    }
    return mine(version=version, **{name: by_keyword(item, mine, version) for name, item in given.items()})


def bench(title: str, message: Any, version: int, kio_type: Any, kafka_type: Any, times: int) -> None:
    kind = type(message)
    data = message.encode(version)
    kafka_value = by_keyword(message, kafka_type, version)
    decoders: dict[str, Callable[[], object]] = {
        "tagwire": lambda: kind.decode(data, version),
        "kafka-python 3.0.12": lambda: kafka_type.decode(data, version=version),
    }
    encoders: dict[str, Callable[[], bytes]] = {
        "tagwire": lambda: message.encode(version),
        "kafka-python 3.0.12": lambda: kafka_value.encode(version=version),
    }
    if kio_type is not None:
        decoders["kio 0.6.5"], encoders["kio 0.6.5"] = kio(kio_type, data)
    fewest = min(elements(decode()) for decode in decoders.values())
    assert fewest >= len(data) / 16, f"{title}: a contender did not decode every element"
    for name, encode in encoders.items():
        assert bytes(encode()) == data, f"{title}: {name} wrote other bytes"
    gc.collect()
    gc.freeze()
    for what, contenders in ((f"decode ({len(data):,} bytes)", decoders), ("encode", encoders)):
        timed = {name: repeat(work, times) for name, work in contenders.items()}
        print(table(f"{title}: {what}", alternate(timed, rounds=ROUNDS), units=times, unit="msg"), flush=True)


def kio(kind: Any, data: bytes) -> tuple[Callable[[], object], Callable[[], bytes]]:
    """Decodes these bytes, and encodes what they say."""
    read, write = entity_reader(kind), entity_writer(kind)
    value, _ = read(data, 0)

    def encode() -> bytes:
        out = io.BytesIO()
        write(out, value)
        return out.getvalue()

    return lambda: read(data, 0)[0], encode


def bench_arrow(title: str, message: Any, version: int, kio_type: Any, times: int) -> None:
    """The same bytes to Arrow columns, every field, beside kio's objects."""
    kind, data = type(message), message.encode(version)
    row = kind.to_arrow(data, version)[0].as_py()
    assert [topic["name"] for topic in row["topics"]] == [topic.name for topic in message.topics]
    contenders = {"tagwire to Arrow": repeat(lambda: kind.to_arrow(data, version), times)}
    if kio_type is not None:
        contenders["kio 0.6.5 to objects"] = repeat(kio(kio_type, data)[0], times)
    print(table(f"{title}: to columns", alternate(contenders, rounds=ROUNDS), units=times, unit="msg"), flush=True)


def bench_column(title: str, message: MessageObject, version: int, rows: int) -> None:
    """A column of structs as a column of messages, beside an object made and written for each row."""
    kind = type(message)
    column = kind.decode_many(pa.array([message.encode(version)] * rows, pa.binary()), version)
    contenders = {
        "columns": lambda: kind.encode_many(column, version),
        "objects": lambda: [object_of(kind, row).encode(version) for row in column.to_pylist()],
    }
    assert contenders["columns"]().to_pylist() == contenders["objects"]()
    print(table(f"{title}: from columns", alternate(contenders, rounds=ROUNDS), units=rows, unit="msg"), flush=True)


def bench_growth() -> None:
    """Twice as many structs, each with one tagged field, must take about twice as long: nothing is copied per level."""
    kind = messages.FetchRequest
    contenders: dict[str, Callable[[], object]] = {}
    for count in (GROWTH, 2 * GROWTH):
        tagged = [kind.FetchPartition(replica_directory_id=UUID(int=1)) for _ in range(count)]
        message = kind(topics=[kind.FetchTopic(partitions=tagged)])
        data = message.encode(17)
        contenders[f"decode {count:,}"] = lambda data=data: kind.decode(data, 17)  # type: ignore[misc]
        contenders[f"encode {count:,}"] = lambda message=message: message.encode(17)  # type: ignore[misc]
    medians = {timing.name: timing.median for timing in alternate(contenders, rounds=ROUNDS)}
    print(f"One-tag structs, {2 * GROWTH:,} for {GROWTH:,}: time grows", end="")
    for what in ("decode", "encode"):
        print(f"  {what} {medians[f'{what} {2 * GROWTH:,}'] / medians[f'{what} {GROWTH:,}']:.2f}x", end="")
    print(flush=True)


def bench_import() -> None:
    """A fresh interpreter that imports tagwire, beside one that imports nothing."""

    def start(code: str) -> Callable[[], None]:
        return lambda: subprocess.run([sys.executable, "-c", code], check=True) and None

    timings = alternate({"import tagwire": start("import tagwire"), "nothing": start("")}, rounds=ROUNDS)
    print(f"import tagwire: {1000 * (timings[0].median - timings[1].median):.0f} ms", flush=True)


def repeat(work: Callable[[], object], times: int) -> Callable[[], None]:
    def run() -> None:
        for _ in range(times):
            work()

    return run


def main() -> None:
    arguments(__doc__).parse_args()
    if KioMetadata is None:
        print("kio is not installed: NOT RUN")
    print(f"kernels {'compiled' if compiled else 'NOT COMPILED'}, medians of {ROUNDS} rounds")
    bench("MetadataResponse v13, 200 x 10 x 3", metadata_response(), 13, KioMetadata, KafkaMetadata, METADATA)
    bench_arrow("MetadataResponse v13, 200 x 10 x 3", metadata_response(), 13, KioMetadata, METADATA)
    bench("FetchRequest v17, 20 partitions", fetch_request(), 17, KioFetch, KafkaFetch, SHORT)
    bench("ApiVersionsResponse v4, 90 keys", api_versions_response(), 4, KioApiVersions, KafkaApiVersions, SHORT)
    heartbeat = messages.HeartbeatRequest(group_id="group-7", generation_id=5, member_id="member-" + "0" * 30)
    bench_column("HeartbeatRequest v4", heartbeat, 4, COLUMN)
    bench_column("MetadataResponse v13, 200 x 10 x 3", metadata_response(), 13, METADATA)
    bench_growth()
    bench_import()


if __name__ == "__main__":
    main()
