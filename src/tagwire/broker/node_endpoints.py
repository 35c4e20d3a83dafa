"""Where clients reach the leaders that a response tells of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from tagwire.broker.cluster_image import ClusterImage
from tagwire.broker.session import Session

NodeEndpoint = TypeVar("NodeEndpoint")


def node_endpoints(
    image: ClusterImage, session: Session, leaders: Iterable[int], make: Callable[..., NodeEndpoint]
) -> list[NodeEndpoint]:
    """Those of `leaders` that run, each as `make` makes it of node_id, host, port and rack; see KIP-951."""
    found = [image.endpoint(node_id, session.listener, session.host) for node_id in leaders if node_id in image.live]
    return [make(node_id=one.node_id, host=one.host, port=one.port, rack=one.rack) for one in found]
