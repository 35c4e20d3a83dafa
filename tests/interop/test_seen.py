"""The table of which versions clients were seen to use is what they use."""

from __future__ import annotations

import json

import pytest

from .peer import NotRunError
from .see_clients import RELEASES, TABLE, seen
from .walkers import Walker, fetch


def test_clients_use_the_versions_that_the_table_says() -> None:
    release = RELEASES[-1]
    stated = json.loads(TABLE.read_text(encoding="utf-8"))
    walkers: list[Walker] = []
    for software, versions in stated.items():
        for version, by_release in versions.items():
            if release in by_release:
                try:
                    walkers.append(fetch(software, version))
                except NotRunError as error:
                    print(f"NOT RUN: {error}")
    if not walkers:
        pytest.skip("NOT RUN: no client could be fetched")
    found = seen(walkers, release)
    assert found
    for (software, version), apis in found.items():
        assert _in_any_case(apis) == _in_any_case(stated[software][version][release]), (software, version)


def _in_any_case(apis: dict[str, list[int]]) -> dict[str, list[int]]:
    """Without heartbeats: a walk that the machine lets end sooner sends none."""
    return {api: versions for api, versions in apis.items() if api != "Heartbeat"}
