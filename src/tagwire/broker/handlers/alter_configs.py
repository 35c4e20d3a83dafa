"""AlterConfigs (key 33): set the configurations of topics, all of them at once: what is not named has its default.

Versions 0-2. Clients that know IncrementalAlterConfigs use that instead; it says what applies to both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tagwire import messages
from tagwire.broker.handlers.incremental_alter_configs import alter_each, once
from tagwire.broker.served import Call, handles
from tagwire.broker.topics import Topic
from tagwire.errors import Error, KafkaError


@handles(messages.AlterConfigsRequest, versions="0-2")
async def alter_configs(call: Call) -> Any:
    return await alter_each(call, messages.AlterConfigsResponse, _changes)


def _changes(topic: Topic, configs: list[Any]) -> Mapping[str, str | None]:
    given = {config.name: config.value for config in once(configs)}
    for name, value in given.items():
        if value is None:
            raise KafkaError(Error.INVALID_REQUEST, f"{name} has no value")
    return {**dict.fromkeys(topic.configs), **given}
