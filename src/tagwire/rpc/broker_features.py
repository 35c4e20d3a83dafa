"""The features that brokers announce (KIP-584): what each supports, and what the cluster has settled on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from tagwire.rpc.ranges import Range

if TYPE_CHECKING:
    from tagwire.messages import ApiVersionsResponse

NO_EPOCH = -1


@dataclass(frozen=True, slots=True)
class BrokerFeatures:
    """What one ApiVersions response tells of features. Their names are not checked: any may come.

    Attributes:
        supported: {name: (lowest, highest)} of the broker that responded.
        finalized: {name: level} of the whole cluster.
        epoch: grows with every change of `finalized`; -1 where the broker does not tell.
    """

    supported: Mapping[str, Range] = field(default_factory=dict)
    finalized: Mapping[str, int] = field(default_factory=dict)
    epoch: int = NO_EPOCH

    @classmethod
    def of(cls, response: ApiVersionsResponse) -> Self:
        """What an ApiVersionsResponse says; versions 0-2 say nothing."""
        return cls(
            {feature.name: (feature.min_version, feature.max_version) for feature in response.supported_features},
            {feature.name: feature.max_version_level for feature in response.finalized_features},
            response.finalized_features_epoch,
        )
