"""An audit from request logs.

Who breaks when the brokers are upgraded? Kafka's request log tells what each client speaks, and the table of releases
what each release serves. The command is `tagwire audit PATH --against 4.0`; this is the same from Python.
"""

import json
import tempfile
from pathlib import Path

from tagwire.capture import Census, Losses, Outcome, judge, seen_in, take_census

CLIENTS = [  # what a broker's log says: client id, its software, API, version
    ("billing", ("apache-kafka-java", "3.6.1"), (0, "PRODUCE"), 9),
    ("billing", ("apache-kafka-java", "3.6.1"), (3, "METADATA"), 12),
    ("old-exporter", ("unknown", "unknown"), (0, "PRODUCE"), 2),
    ("old-exporter", ("unknown", "unknown"), (3, "METADATA"), 1),
]


def line(client: str, software: tuple[str, str], api: tuple[int, str], version: int) -> str:
    """One completed request as Kafka 3.x logs it."""
    request = {
        "requestHeader": {
            "requestApiKey": api[0],
            "requestApiVersion": version,
            "clientId": client,
            "requestApiKeyName": api[1],
        },
        "connection": "10.0.0.1:9092-10.0.0.7:40000-0",
        "securityProtocol": "PLAINTEXT",
        "principal": "User:ANONYMOUS",
        "listener": "PLAINTEXT",
        "clientInformation": {"softwareName": software[0], "softwareVersion": software[1]},
    }
    return f"[2026-11-01 12:00:00,000] DEBUG Completed request:{json.dumps(request)} (kafka.request.logger)\n"


with tempfile.TemporaryDirectory() as folder:
    log = Path(folder, "kafka-request.log")
    log.write_text("".join(line(*client) for client in CLIENTS), encoding="utf-8")

    census = Census()
    for seen in seen_in(log, Losses()):
        take_census(census, seen)

breaks = set()
for usage in census.usages():
    verdict = judge(usage, "4.0")
    print(f"{verdict.client.client_id}: {verdict.outcome.value}")
    for finding in verdict.findings:
        print(f"    {finding}")
    if verdict.outcome is Outcome.BREAKS:
        breaks.add(verdict.client.client_id)
assert breaks == {"old-exporter"}
