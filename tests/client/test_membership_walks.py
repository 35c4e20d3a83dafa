"""Members of groups of the embedded broker (tests/interop has Kafka's, and all assignors)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tagwire.broker import Broker

from .membership_walks import SESSION, MembershipWalks, Scene, scene_of
from .walks import Kind


@pytest.fixture(scope="module")
def kind() -> Iterator[Kind]:
    timing = {"group_session_timeout_s": SESSION, "group_heartbeat_interval_s": 0.1}
    with Broker(auto_create_topics=False, **timing) as broker:
        yield Kind("the embedded broker", broker.bootstrap)


class TestEmbedded(MembershipWalks):
    @pytest.fixture(params=["range", "cooperative-sticky", "consumer:uniform"])
    def scene(self, kind: Kind, request: pytest.FixtureRequest) -> Iterator[Scene]:
        with scene_of(kind, request.param) as scene:
            yield scene
