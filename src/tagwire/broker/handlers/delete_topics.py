"""DeleteTopics (key 20): delete topics and their records, each with its own outcome.

Versions 1-6; from version 6 a topic is named by its name or its id. Deleted is deleted: neither the topic nor its
records come back after a crash. Source: facts/kafka_protocol.md 4.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from tagwire import messages
from tagwire.broker.served import Call, handles
from tagwire.broker.topics import Topic
from tagwire.errors import Error, KafkaError
from tagwire.rpc.since import DELETE_TOPICS_IDS

Response = messages.DeleteTopicsResponse

NO_ID = UUID(int=0)


@handles(messages.DeleteTopicsRequest, versions="1-6")
async def delete_topics(call: Call) -> Any:
    request = call.request
    if call.version >= DELETE_TOPICS_IDS:
        asked = [(state.name, state.topic_id) for state in request.topics]
    else:
        asked = [(name, NO_ID) for name in request.topic_names]
    return Response(responses=[await _answer(call, name, topic_id) for name, topic_id in dict.fromkeys(asked)])


async def _answer(call: Call, name: str | None, topic_id: UUID) -> Any:
    try:
        topic = _named(call, name, topic_id)
        await call.broker.topics.delete(topic)
        await call.broker.groups.forget_topic(topic.name)
    except KafkaError as error:
        return Response.DeletableTopicResult(
            name=name, topic_id=topic_id, error_code=error.code, error_message=error.message or None
        )
    return Response.DeletableTopicResult(name=topic.name, topic_id=topic.topic_id)


def _named(call: Call, name: str | None, topic_id: UUID) -> Topic:
    topics = call.broker.topics
    if (name is None) == (topic_id == NO_ID):
        raise KafkaError(Error.INVALID_REQUEST, "a topic is named by its name or its id, one of them")
    if name is None:
        found, error = topics.by_id(topic_id), Error.UNKNOWN_TOPIC_ID
    else:
        found, error = topics.get(name), Error.UNKNOWN_TOPIC_OR_PARTITION
    if found is None:
        raise KafkaError(error, f"there is no topic {name if name is not None else topic_id}")
    return found
