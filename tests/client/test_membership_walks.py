"""Members of groups of the embedded broker (tests/interop has Kafka's, and all assignors)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tagwire.broker import Broker

from .membership_walks import MembershipWalks, Scene, scene_of
from .walks import Kind


@pytest.fixture(scope="module")
def kind() -> Iterator[Kind]:
    with Broker(auto_create_topics=False) as broker:
        yield Kind("the embedded broker", broker.bootstrap)


class TestEmbedded(MembershipWalks):
    @pytest.fixture(params=["range", "cooperative-sticky", "consumer:uniform"])
    def scene(self, kind: Kind, request: pytest.FixtureRequest) -> Iterator[Scene]:
        with scene_of(kind, request.param) as scene:
            yield scene
