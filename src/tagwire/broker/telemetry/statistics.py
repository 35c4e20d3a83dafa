"""Statistics of a running broker, as one document of plain values."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import tagwire
from tagwire.broker.node import Node
from tagwire.broker.telemetry.requests import RequestTotal
from tagwire.broker.topic import Topic
from tagwire.rpc import serving
from tagwire.spec import releases


def statistics(node: Node, started: float, connections: dict[str, Any]) -> dict[str, Any]:
    """The document.

    Args:
        started: when the broker was, seconds since 1970 UTC.
        connections: what is known of the connections.

    Returns:
        broker: who it is and since when. connections: how many, from whom, and what they hold. requests: how many by
        API and version. clients: who sent how many, and `old_versions` that Kafka's newest release does not serve any
        more. topics: partitions, bytes and offsets of each. offline: the partitions that are, each with its reason.
        groups, transactional_ids: how many; groups_held_bytes: about how much memory groups take.
    """
    totals = node.hooks.requests.totals()
    return {
        "broker": {
            "node_id": node.node_id,
            "cluster_id": node.cluster_id,
            "version": tagwire.__version__,
            "data": str(node.data_path),
            "fsync": node.settings.fsync,
            "uptime_s": round(time.time() - started, 3),
        },
        "connections": connections,
        "requests": _by_api(totals),
        "clients": _by_client(totals),
        "topics": [_topic(topic) for topic in node.topics],
        "offline": [
            {"topic": partition.topic, "partition": partition.index, "reason": partition.log.offline_reason}
            for partition in node.topics.partitions()
            if partition.log.is_offline
        ],
        "groups": sum(1 for _ in node.groups),
        "groups_held_bytes": node.groups.held_bytes,
        "transactional_ids": sum(1 for _ in node.transactions),
    }


def _by_api(totals: Iterable[RequestTotal]) -> list[dict[str, Any]]:
    rows: dict[tuple[int, int], dict[str, Any]] = {}
    for total in totals:
        row = rows.setdefault(
            (total.api_key, total.version),
            {"api": total.api, "version": total.version, "count": 0, "request_bytes": 0, "response_bytes": 0},
        )
        for name in ("count", "request_bytes", "response_bytes"):
            row[name] += getattr(total, name)
    return list(rows.values())


def _by_client(totals: Iterable[RequestTotal]) -> list[dict[str, Any]]:
    newest = releases.served(releases.names()[-1])
    rows: dict[tuple[str, str, str], dict[str, Any]] = {}
    for total in totals:
        who = (total.client_id, total.software, total.software_version)
        row = rows.setdefault(
            who, {**dict(zip(("client_id", "software", "software_version"), who)), "count": 0, "old_versions": []}
        )
        row["count"] += total.count
        served = newest.get(total.api_key)
        if served is not None and 0 <= total.version < served.lowest:
            version_range = (total.version, total.version)
            row["old_versions"].append(
                {"api": total.api, "version": total.version, "served_by": serving(total.api_key, version_range)}
            )
    return sorted(rows.values(), key=lambda row: -row["count"])


def _topic(topic: Topic) -> dict[str, Any]:
    logs = [partition.log for partition in topic.partitions]
    return {
        "name": topic.name,
        "partitions": len(logs),
        "bytes": sum(log.size_bytes for log in logs),
        # The start first: it may move while this is read, and never past the end.
        "offsets": sum(-log.start_offset + log.end_offset for log in logs),
        "offline": sum(log.is_offline for log in logs),
    }


def tables(document: dict[str, Any]) -> list[tuple[list[str], list[list[str]]]]:
    """The document for people: the titles and the rows of its tables."""
    requests = [
        [row["api"], str(row["version"]), str(row["count"]), str(row["request_bytes"]), str(row["response_bytes"])]
        for row in document["requests"]
    ]
    clients = [
        [
            row["client_id"] or "-",
            f"{row['software']} {row['software_version']}".strip() or "-",
            str(row["count"]),
            ", ".join(f"{old['api']} v{old['version']} ({old['served_by']})" for old in row["old_versions"]) or "-",
        ]
        for row in document["clients"]
    ]
    topics = [
        [row["name"], str(row["partitions"]), str(row["bytes"]), str(row["offsets"]), str(row["offline"])]
        for row in document["topics"]
    ]
    offline = [[f"{row['topic']}-{row['partition']}", row["reason"]] for row in document["offline"]]
    return [
        (["API", "version", "count", "bytes in", "bytes out"], requests),
        (["client id", "software", "requests", "old versions"], clients),
        (["topic", "partitions", "bytes", "offsets", "offline"], topics),
        (["offline partition", "reason"], offline),
    ]
