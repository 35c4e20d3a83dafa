"""How both brokers are run, so that what may be the same is the same."""

from __future__ import annotations

from typing import Final

from tagwire.broker import Broker

SETTINGS: Final = """
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
group.min.session.timeout.ms=1
group.consumer.min.assignment.interval.ms=0
group.consumer.assignment.interval.ms=0
group.consumer.migration.policy=bidirectional
"""
"""Of Kafka. Its groups of KIP-848 assign at once, as ours do; what sessions may last is not bounded here."""


def ours(release: str) -> Broker:
    """Our broker, as Kafka's is run."""
    return Broker(
        as_release=release,
        authorizer="StandardAuthorizer",
        super_users="User:ANONYMOUS",
        group_migration="bidirectional",
        fsync="never",
    )
