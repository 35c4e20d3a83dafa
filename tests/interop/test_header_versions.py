"""Kafka's generated classes and the catalog give each version of each API the same headers."""

from __future__ import annotations

import pytest

from tagwire.rpc import api_name, request_header_version, response_header_version
from tagwire.spec import catalog
from tagwire.spec.api_keys import API_NAMES

from .conftest import NEW, OLD, Count, Peers


@pytest.mark.parametrize("release", [OLD, NEW])
def test_java_has_the_same_header_versions(peers: Peers, release: str, count: Count) -> None:
    asked = [(api, v) for api, name in API_NAMES.items() for v in catalog.message(f"{name}Request").valid_versions]
    answers = peers(release).ask("HeaderVersions", [f"{api} {version}" for api, version in asked])
    theirs = {at: answer for at, answer in zip(asked, answers, strict=True) if answer != "-"}
    ours = {(api, v): f"{request_header_version(api, v)} {response_header_version(api, v)}" for api, v in theirs}
    assert {f"{api_name(api)} v{v}": theirs[api, v] for api, v in theirs if theirs[api, v] != ours[api, v]} == {}
    assert len(theirs) > 300
    count(f"Kafka {release}: the header versions of {len(theirs)} versions of APIs")
