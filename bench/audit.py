"""Claim: out of packets, headers 20x as fast as tshark's Kafka dissector, bodies 5x; request logs 5x a jq pipeline.

    make bench WHAT=audit

All are processes, timed from their start to their end, on the same files, held to one core, the same for all. tshark
and jq are Debian's; where one is not installed its part is NOT RUN. The same requests are in both files: 50 clients
that ask for versions, then Produce with answers.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from rounds import alternate, arguments, sized, table

from tagwire import messages
from tagwire.capture import Endpoint
from tagwire.capture.recording import FILE_HEADER, Recording
from tagwire.rpc.headers import RequestHeader, encode_request_header, encode_response_header

REQUESTS = sized(500_000, 500)
LINES = sized(100_000, 100)
CLIENTS = 50
ROUNDS = sized(5, 1)
START = 1_700_000_000_000_000
BROKER = Endpoint("10.1.0.1", 9092)
CORE = max(os.sched_getaffinity(0))

READ = """
import sys
from pathlib import Path
from tagwire.capture import Census, Losses, seen_in, take_census
census = Census()
for seen in seen_in(Path(sys.argv[1]), Losses(), bodies=sys.argv[2] == "bodies"):
    take_census(census, seen)
assert sum(usage.count for usage in census.usages()) == int(sys.argv[3])
"""
TSHARK = ["-n", "-d", "tcp.port==9092,kafka", "-Y", "kafka", "-T", "fields"]
HEADERS = ["-e", "ip.src", "-e", "kafka.request_key", "-e", "kafka.request.version", "-e", "kafka.client_id"]
BODIES = [*HEADERS, "-e", "kafka.topic_name", "-e", "kafka.partition_id", "-e", "kafka.error"]
JQ = (
    "[.requestHeader.requestApiKey, .requestHeader.requestApiVersion, .requestHeader.clientId, .connection, .principal,"
    " .listener, .clientInformation.softwareName, .clientInformation.softwareVersion,"
    " [.response | .. | .errorCode? | select(. != null and . != 0)]]"
)


def framed(header: bytes, body: bytes) -> bytes:
    return struct.pack(">i", len(header) + len(body)) + header + body


def request(message: Any, version: int) -> bytes:
    header = RequestHeader(message.spec.api_key, version, 0, "billing")
    return framed(encode_request_header(header), message.encode(version))


def response(message: Any, version: int) -> bytes:
    return framed(encode_response_header(message.spec.api_key, version, 0), message.encode(version))


def exchanges() -> list[tuple[int, bytes, bytes]]:
    """Version, request and answer: of ApiVersions, and of Produce."""
    asked = messages.ApiVersionsRequest(client_software_name="librdkafka", client_software_version="2.3.0")
    kind = messages.ApiVersionsResponse
    offered = kind(api_keys=[kind.ApiVersion(api_key=key, min_version=0, max_version=9) for key in range(40)])
    produce, answer = messages.ProduceRequest, messages.ProduceResponse
    partition = produce.PartitionProduceData(index=3, records=bytes(400))
    sent = produce(acks=1, topic_data=[produce.TopicProduceData(name="orders", partition_data=[partition])])
    stored = answer.PartitionProduceResponse(index=3, base_offset=12)
    acknowledged = answer(responses=[answer.TopicProduceResponse(name="orders", partition_responses=[stored])])
    return [(3, request(asked, 3), response(offered, 3)), (9, request(sent, 9), response(acknowledged, 9))]


def write_packets(path: Path) -> None:
    (_, asked, offered), (_, sent, stored) = exchanges()
    recordings = [Recording(Endpoint(f"10.0.0.{at}", 20_000 + at), BROKER) for at in range(1, CLIENTS + 1)]
    with open(path, "wb") as out:
        out.write(FILE_HEADER)
        for recording in recordings:
            out.write(recording.opened(START) + recording.sent(asked, START, by_client=True))
            out.write(recording.sent(offered, START, by_client=False))
        for at in range(REQUESTS):
            recording, number, time = recordings[at % CLIENTS], struct.pack(">i", at), START + at * 10
            out.write(recording.sent(sent[:8] + number + sent[12:], time, by_client=True))
            out.write(recording.sent(stored[:4] + number + stored[8:], time + 5, by_client=False))


def write_log(path: Path) -> None:
    software = {"softwareName": "librdkafka", "softwareVersion": "2.3.0"}
    answer = {"index": 3, "errorCode": 0, "baseOffset": 12, "logAppendTimeMs": -1, "logStartOffset": 0}
    line = {
        "isForwarded": False,
        "requestHeader": {"requestApiKey": 0, "requestApiVersion": 9, "correlationId": 1, "clientId": "billing"},
        "request": {"acks": 1, "timeoutMs": 1000, "topicData": [{"name": "orders", "partitionData": [{"index": 3}]}]},
        "response": {"responses": [{"name": "orders", "partitionResponses": [answer]}], "throttleTimeMs": 0},
        "connection": "10.1.0.1:9092-10.0.0.1:20001-0-1",
        **dict.fromkeys(("totalTimeMs", "requestQueueTimeMs", "localTimeMs", "remoteTimeMs", "sendTimeMs"), 1.234),
        "securityProtocol": "PLAINTEXT",
        "principal": "User:ANONYMOUS",
        "listener": "PLAINTEXT",
        "clientInformation": software,
    }
    text = json.dumps(line, separators=(",", ":"))
    with open(path, "w", encoding="utf-8") as out:
        for at in range(LINES):
            out.write(f"[2026-01-02 03:04:{at % 60:02},678] DEBUG Completed request:{text} (kafka.request.logger)\n")


def run(command: list[str], **given: Any) -> subprocess.CompletedProcess[str]:
    """Runs a process, and those that it starts, on one core."""
    return subprocess.run(["taskset", "-c", str(CORE), *command], check=True, text=True, **given)


def tagwire(path: Path, bodies: str, count: int) -> None:
    run([sys.executable, "-c", READ, str(path), bodies, str(count)])


def tshark(path: Path, fields: list[str]) -> None:
    run(["tshark", "-r", str(path), *TSHARK, *fields], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def jq(path: Path) -> None:
    command = f"sed -n 's/^.*Completed request:\\({{.*}}\\).*$/\\1/p' '{path}' | jq -c '{JQ}' | wc -l"
    done = run(["bash", "-c", command], capture_output=True)
    assert int(done.stdout) == LINES


def peer(name: str, work: Callable[[], None]) -> dict[str, Callable[[], None]]:
    """A program to be compared with, where it is installed."""
    if shutil.which(name):
        return {name: work}
    print(f"{name} is not installed: NOT RUN")
    return {}


def main() -> None:
    arguments(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        capture, log = Path(folder, "capture.pcap"), Path(folder, "request.log")
        write_packets(capture)
        write_log(log)
        frames = 2 * (REQUESTS + CLIENTS)
        for what, fields in (("headers", HEADERS), ("bodies", BODIES)):
            contenders = peer("tshark", partial(tshark, capture, fields))
            contenders["tagwire"] = partial(tagwire, capture, what, REQUESTS + CLIENTS)
            print(table(f"packets, {what}", alternate(contenders, rounds=ROUNDS), units=frames, unit="frames"))
        contenders = peer("jq", partial(jq, log)) | {"tagwire": partial(tagwire, log, "headers", LINES)}
        print(table("request log", alternate(contenders, rounds=ROUNDS), units=LINES, unit="requests"))


if __name__ == "__main__":
    main()
