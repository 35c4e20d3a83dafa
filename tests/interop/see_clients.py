"""Has published clients walk on the embedded broker, and writes down which versions they use:
`python -m tests.interop.see_clients`.

What it writes is what the reference tells of clients other than Kafka's own: src/tagwire/capture/seen.json.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

sys.path.append(str(Path(__file__).resolve().parents[2] / "scripts"))

from tagwire.broker import Broker
from tagwire.spec import releases

from .peer import NotRunError
from .test_audit import ALIASES, CLIENTS
from .walkers import Walker, fetch, walk_all

TABLE: Final = Path(__file__).resolve().parents[2] / "src" / "tagwire" / "capture" / "seen.json"
RELEASES: Final = ("2.8", "3.9", releases.names()[-1])
"""As which the embedded broker stands in."""

Seen = dict[str, dict[str, dict[str, dict[str, list[int]]]]]
"""{software: {version: {release: {API: versions}}}}."""


def main() -> int:
    """Sees them all; those that cannot be had are said and left out, and those that do not work on a release."""
    walkers = []
    for client in CLIENTS:
        if client[0] == "java" or len(client) > 2:
            continue  # the first speak what their release does, the others what they are told to
        try:
            walkers.append(fetch(*client))
        except NotRunError as error:
            print(f"NOT RUN: {error}", flush=True)
    found: Seen = {}
    for release in RELEASES:
        for (software, version), apis in sorted(seen(walkers, release).items(), key=lambda one: _order(*one[0])):
            found.setdefault(software, {}).setdefault(version, {})[release] = apis
    TABLE.write_text(_text(found), encoding="utf-8")
    return 0


def seen(walkers: Sequence[Walker], release: str) -> dict[tuple[str, str], dict[str, list[int]]]:
    """{(software, version): {API: versions}} of those whose walks came to their ends."""
    with Broker(as_release=release, fsync="never") as broker:
        walked = walk_all(walkers, broker.bootstrap, again=lambda walker: True)
        totals = list(broker.requests.totals())
    owners = {walker.client_id: walker for walker in walkers}
    found: dict[tuple[str, str], dict[str, set[int]]] = {}
    for total in totals:
        told = ALIASES.get(total.client_id, total.client_id)
        walker = owners.get(told) or next((owner for name, owner in owners.items() if told.startswith(name)), None)
        if walker is not None and walked[walker.name].works:
            apis = found.setdefault((walker.software, walker.version), {})
            apis.setdefault(total.api, set()).add(total.version)
    for walker in walkers:
        print(f"{walker.name} as on Kafka {release}: {walked[walker.name]}", flush=True)
    return {client: {api: sorted(versions) for api, versions in sorted(apis.items())} for client, apis in found.items()}


def _order(software: str, version: str) -> tuple[str, list[int]]:
    return software, [int(part) for part in version.split(".")]


def _text(found: Seen) -> str:
    """JSON with a line for each version and release."""
    parts = []
    for software, versions in sorted(found.items()):
        inner = []
        for version, by_release in sorted(versions.items(), key=lambda one: _order(software, one[0])):
            lines = ",\n".join(f'      "{release}": {json.dumps(apis)}' for release, apis in by_release.items())
            inner.append(f'    "{version}": {{\n{lines}\n    }}')
        parts.append(f'  "{software}": {{\n' + ",\n".join(inner) + "\n  }")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    sys.exit(main())
