"""What the APIs of configurations ask for: it depends on what is configured. Source: Kafka's ConfigHelper and
ControllerApis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tagwire import messages
from tagwire.broker.authorization.access import REFUSED, Access, AnyCall, Handle
from tagwire.broker.authorization.acls import CLUSTER_NAME, Operation, ResourceType
from tagwire.broker.session import AnyResponse
from tagwire.errors import Error

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32

ABOUT: Final = {
    TOPIC: ResourceType.TOPIC,
    BROKER: ResourceType.CLUSTER,
    BROKER_LOGGER: ResourceType.CLUSTER,
    CLIENT_METRICS: ResourceType.CLUSTER,
    GROUP: ResourceType.GROUP,
}
"""Which type of resource an ACL is about, by which configurations are. What is none of these, the handler refuses."""


@dataclass(frozen=True, slots=True)
class Configs:
    """Each configured resource needs an operation on it.

    Attributes:
        operation: which.
        results: the response's field that lists the outcomes.
        refuse: makes one, of what is requested and an error.
        once: whether what is named twice is left to the handler, which refuses it for that.
        about: as `ABOUT`.
    """

    operation: Operation
    results: str
    refuse: Callable[[Any, Error], object]
    once: bool
    about: Mapping[int, ResourceType]

    async def respond(self, call: AnyCall, access: Access, handle: Handle) -> AnyResponse:
        """As `Rule`."""
        resources = call.request.resources
        times = Counter((one.resource_type, one.resource_name) for one in resources)
        allowed, refused = [], []
        for one in resources:
            kind = self.about.get(one.resource_type)
            if kind is None or (self.once and times[one.resource_type, one.resource_name] > 1):
                allowed.append(one)
                continue
            name = CLUSTER_NAME if kind is ResourceType.CLUSTER else one.resource_name
            if access.may(self.operation, kind, name):
                allowed.append(one)
            else:
                refused.append(self.refuse(one, REFUSED[kind]))
        call.request.resources = allowed
        response = await handle(call)
        getattr(response, self.results).extend(refused)
        return response


def described(one: Any, error: Error) -> object:
    return messages.DescribeConfigsResponse.DescribeConfigsResult(
        error_code=error, error_message=None, resource_type=one.resource_type, resource_name=one.resource_name
    )


def altered(one: Any, error: Error) -> object:
    return messages.AlterConfigsResponse.AlterConfigsResourceResponse(
        error_code=error, error_message=None, resource_type=one.resource_type, resource_name=one.resource_name
    )


def incrementally_altered(one: Any, error: Error) -> object:
    return messages.IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
        error_code=error, error_message=None, resource_type=one.resource_type, resource_name=one.resource_name
    )


DESCRIBED: Final = Configs(Operation.DESCRIBE_CONFIGS, "results", described, False, ABOUT)
ALTERED: Final = Configs(
    Operation.ALTER_CONFIGS,
    "responses",
    altered,
    True,
    {kind: about for kind, about in ABOUT.items() if kind != BROKER_LOGGER},
)
INCREMENTALLY_ALTERED: Final = Configs(Operation.ALTER_CONFIGS, "responses", incrementally_altered, True, ABOUT)
