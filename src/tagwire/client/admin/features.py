"""Features: what a cluster has switched on, and up to which level; describe, update. Source: KIP-584, KIP-778."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import tagwire
from tagwire import messages
from tagwire.client import arguments
from tagwire.client.admin.api_driver import AdminApi, ApiResult, ApiResults
from tagwire.client.property_values import wrong
from tagwire.escaping import told
from tagwire.rpc import BrokerFeatures
from tagwire.rpc.handshake import SOFTWARE_NAME
from tagwire.rpc.version_gates import (
    API_VERSIONS_CLIENT_SOFTWARE,
    UPDATE_FEATURES_ONE_RESULT,
    UPDATE_FEATURES_UPGRADE_TYPE,
)

UPGRADE: Final = "upgrade"
UPGRADE_TYPES: Final = {UPGRADE: 1, "safe_downgrade": 2, "unsafe_downgrade": 3}
"""A downgrade that is not safe may lose metadata. Source: FeatureUpdate.UpgradeType."""

_MAX_LEVEL: Final = 2**15 - 1


@dataclass(frozen=True, slots=True)
class FeatureUpdate:
    """What becomes of a feature.

    Attributes:
        max_version_level: its level; 0 switches it off, which is a downgrade.
        upgrade_type: one of `UPGRADE_TYPES`.
    """

    max_version_level: int
    upgrade_type: str = UPGRADE


class ClusterFeatures(AdminApi):
    """Features of a cluster."""

    async def describe_features(self, node: int | None = None) -> BrokerFeatures:
        """As `Admin.describe_features`."""
        if node is not None:
            node = arguments.numbers("node", node)[0]

        async def send(left: list[str], deadline: float) -> ApiResults[str, BrokerFeatures]:
            connection = await self._network.connection(node, deadline)
            request = messages.ApiVersionsRequest(
                client_software_name=SOFTWARE_NAME, client_software_version=tagwire.__version__
            )
            self._require(connection, request.api_key, API_VERSIONS_CLIENT_SOFTWARE)
            response = await self._network.request(connection, request, deadline)
            yield ApiResult("features", response.error_code, value=BrokerFeatures.of(response))

        found = await self._drive(["features"], send, "describe", has_named_brokers=node is not None)
        return found["features"]

    async def update_features(self, updates: Mapping[str, FeatureUpdate | int], *, validate_only: bool = False) -> None:
        """As `Admin.update_features`."""
        kind = messages.UpdateFeaturesRequest
        wanted = _updates(updates)

        async def send(left: list[str], deadline: float) -> ApiResults[str, None]:
            request = kind(
                timeout_ms=self._timeout_ms,
                feature_updates=[
                    kind.FeatureUpdateKey(
                        feature=name,
                        max_version_level=wanted[name].max_version_level,
                        upgrade_type=UPGRADE_TYPES[wanted[name].upgrade_type],
                    )
                    for name in left
                ],
                validate_only=validate_only,
            )
            controller = await self._network.controller(deadline)
            self._require(controller, request.api_key, UPDATE_FEATURES_UPGRADE_TYPE)
            response = await self._network.request(controller, request, deadline)
            if response.error_code or controller.version(request.api_key) >= UPDATE_FEATURES_ONE_RESULT:
                for name in left:
                    yield ApiResult(name, response.error_code, response.error_message)
                return
            for result in response.results:
                yield ApiResult(result.feature, result.error_code, result.error_message)

        await self._drive(list(wanted), send, "update feature", changes=True)


def _updates(given: object) -> dict[str, FeatureUpdate]:
    shape = 'a dict by feature, {"group.version": FeatureUpdate(1)}, or {"group.version": 1}'
    if not isinstance(given, Mapping) or not given:
        raise wrong("updates", arguments.shown(given), shape)
    found: dict[str, FeatureUpdate] = {}
    for name, update in given.items():
        if not isinstance(update, FeatureUpdate):
            update = FeatureUpdate(update)
        where = f"level of {told(arguments.name('a key of updates', name))}"
        level = arguments.whole(update.max_version_level)
        if level is None or not 0 <= level <= _MAX_LEVEL:
            raise wrong(where, arguments.shown(update.max_version_level), f"a whole number, 0 to {_MAX_LEVEL}")
        if update.upgrade_type not in UPGRADE_TYPES:
            raise wrong("upgrade_type", arguments.shown(update.upgrade_type), ", ".join(UPGRADE_TYPES))
        if not level and update.upgrade_type == UPGRADE:
            raise wrong(where, "0", "1 or more for an upgrade; to switch a feature off is a downgrade")
        found[name] = FeatureUpdate(level, update.upgrade_type)
    return found
