"""AlterConfigs (key 33): set the configurations of topics, all of them at once: what is not named has its default.

Versions 0-2. Clients that know IncrementalAlterConfigs use that instead; it says what applies to both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tagwire import messages
from tagwire.broker.handlers.incremental_alter_configs import SET, Alteration, Change, alter_all, once
from tagwire.broker.registry import Call, handles
from tagwire.broker.topic import Topic
from tagwire.errors import Error, KafkaError

Request = messages.AlterConfigsRequest
Response = messages.AlterConfigsResponse


@handles(Request, versions="0-2")
async def alter_configs(call: Call[Request]) -> Response:
    alterations = [
        Alteration(
            resource.resource_type,
            resource.resource_name,
            [Change(config.name, SET, config.value) for config in resource.configs],
        )
        for resource in call.request.resources
    ]
    outcomes = await alter_all(call.broker, alterations, _values, validate_only=call.request.validate_only)
    return Response(
        responses=[
            Response.AlterConfigsResourceResponse(
                error_code=refusal.code if refusal else Error.NONE,
                error_message=refusal.message if refusal else None,
                resource_type=resource_type,
                resource_name=name,
            )
            for (resource_type, name), refusal in outcomes.items()
        ]
    )


def _values(topic: Topic, changes: Sequence[Change]) -> Mapping[str, str | None]:
    given = {change.name: change.value for change in once(changes)}
    for name, value in given.items():
        if value is None:
            raise KafkaError(Error.INVALID_REQUEST, f"{name} has no value")
    return {**dict.fromkeys(topic.configs), **given}
