"""Members of groups of Kafka's own brokers, release by release, by both protocols."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..client.membership_walks import SESSION, MembershipWalks
from ..client.walks import Kind
from .conftest import Programs, ends_of
from .real_broker import RELEASES
from .real_node import RealNode

# Sessions and heartbeats as short as the walks want them; Kafka's own are for clusters that people use.
_SETTINGS = f"""
group.min.session.timeout.ms=100
group.consumer.min.heartbeat.interval.ms=100
group.consumer.heartbeat.interval.ms=100
group.consumer.min.session.timeout.ms={SESSION * 1000:.0f}
group.consumer.session.timeout.ms={SESSION * 1000:.0f}
"""


class TestKafka(MembershipWalks):
    @pytest.fixture(scope="class", params=ends_of(RELEASES))
    @classmethod
    def kind(
        cls, request: pytest.FixtureRequest, programs: Programs, tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[Kind]:
        jars = programs(request.param).jars
        node = RealNode.alone(tmp_path_factory.mktemp(f"groups-of-{request.param}"))
        node.settings = _SETTINGS
        node.format(jars)
        with node.running(jars):
            yield Kind(f"Kafka {request.param}", node.address())
