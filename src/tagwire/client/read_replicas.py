"""Which broker a partition is fetched from: its leader, or a follower that the leader prefers for the client's rack
(KIP-392).

A follower is fetched from until `metadata.max.age.ms` is over, or it refuses anything; then the leader is asked again.
Where the named replica gives nothing and the leader names another one, or the same, the leader is not told of the rack
for as long, so that it gives the records itself.
"""

from __future__ import annotations

from tagwire.client.fetch_positions import UNKNOWN, FetchPosition
from tagwire.client.network_client import NetworkClient
from tagwire.errors import RemoteProtocolError


def source_of(position: FetchPosition, leader: int, network: NetworkClient) -> int:
    """The broker to fetch from."""
    if position.replica != UNKNOWN and (
        network.now() >= position.replica_until or not network.is_known(position.replica)
    ):
        forget_replica(position)
    return leader if position.replica == UNKNOWN else position.replica


def forget_replica(position: FetchPosition) -> bool:
    """Goes back to the leader. Whether a follower was fetched from."""
    was_follower = position.replica != UNKNOWN
    position.replica = UNKNOWN
    return was_follower


def follow(position: FetchPosition, replica: int, broker: str, network: NetworkClient, max_age: float) -> None:
    """Takes that `broker` prefers another replica.

    Raises RemoteProtocolError: it was not told of a rack.
    """
    now, was_redirected = network.now(), position.is_redirected
    if position.shuns_replicas_until > now:
        raise RemoteProtocolError(
            f"{broker} wants {position.partition} to be fetched from broker {replica}, and gives no records, "
            "though it was told of no rack"
        )
    position.is_redirected = True
    if not network.is_known(replica):
        network.forget({position.partition.topic})  # it may be a new one
    if was_redirected:
        forget_replica(position)
        position.shuns_replicas_until, position.is_redirected = now + max(max_age, network.timeout), False
    elif network.is_known(replica):
        position.replica, position.replica_until = replica, now + max_age
