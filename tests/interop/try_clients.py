"""Tries published clients on real releases of Kafka, and writes down which work: `python -m tests.interop.try_clients`.

What it writes is what an audit knows of clients other than Kafka's own: src/tagwire/capture/tried.json.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Final

sys.path.append(str(Path(__file__).resolve().parents[2] / "scripts"))

from .peer import NotRunError
from .real_broker import RealBroker
from .walkers import Walked, Walker, fetch, walk_all

TABLE: Final = Path(__file__).resolve().parents[2] / "src" / "tagwire" / "capture" / "tried.json"
BEFORE: Final = "3.9.2"
RELEASES: Final = ("4.0.0", "4.0.2", "4.3.1", "4.4.0")
CLIENTS: Final = {
    "aiokafka": ("0.8.1", "0.10.0", "0.14.0"),
    "franz-go": ("1.0.0", "1.22.2"),
    "kafka-go": ("0.4.30", "0.4.42", "0.4.47", "0.4.48", "0.4.51"),
    "kafka-node": ("5.0.0",),
    "kafka-python": ("1.4.4", "1.4.7", "2.0.2", "2.2.0", "3.0.12"),
    "kafkajs": ("1.8.1", "1.12.0", "1.16.0", "2.2.4"),
    "librdkafka": ("0.11.6", "1.0.1", "1.3.0", "1.6.1", "1.7.0", "1.8.2", "1.9.0", "1.9.2", "2.15.0"),
    "sarama": ("1.29.1", "1.38.1", "1.40.1", "1.41.3", "1.42.2", "1.43.0"),
}
"""Sarama speaks the versions of a release that it is told; these keep to their default."""


def main() -> int:
    """Tries them all; those that cannot be had, or do not work on `BEFORE` either, are said and left out."""
    walkers = [walker for walker in map(_fetched, _named()) if walker is not None]
    before = _walks(BEFORE, walkers)
    for walker in walkers:
        if not before[walker.name].works:
            print(f"{walker.name} does not work on Kafka {BEFORE}: {before[walker.name].said}")
    walkers = [walker for walker in walkers if before[walker.name].works]
    found: dict[str, dict[str, dict[str, bool]]] = {}
    for release in RELEASES:
        walked = _walks(release, walkers)
        for walker in walkers:
            works = found.setdefault(walker.software, {}).setdefault(walker.version, {})
            works[release] = walked[walker.name].works
            print(f"{walker.name} on Kafka {release}: {walked[walker.name]}", flush=True)
    TABLE.write_text(_text(found), encoding="utf-8")
    return 0


def _named() -> list[tuple[str, str]]:
    return [(software, version) for software, versions in CLIENTS.items() for version in versions]


def _fetched(client: tuple[str, str]) -> Walker | None:
    try:
        return fetch(*client)
    except NotRunError as error:
        print(f"NOT RUN: {error}", flush=True)
        return None


def _walks(release: str, walkers: list[Walker]) -> dict[str, Walked]:
    broker = RealBroker.fetch(release)
    with tempfile.TemporaryDirectory(prefix="tagwire-tried-") as folder, broker.running(Path(folder)) as address:
        return walk_all(walkers, address, again=lambda walker: True)


def _text(found: dict[str, dict[str, dict[str, bool]]]) -> str:
    """JSON with a line for each version."""
    parts = []
    for software, versions in found.items():
        lines = ",\n".join(f'    "{version}": {json.dumps(works)}' for version, works in versions.items())
        parts.append(f'  "{software}": {{\n{lines}\n  }}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    sys.exit(main())
