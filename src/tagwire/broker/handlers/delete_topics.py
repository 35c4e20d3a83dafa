"""DeleteTopics (key 20): delete topics and their records, each with its own outcome.

Versions 1-6; from version 6 a topic is named by its name or its id. One that is named twice in a request, be it by
both, is refused.
Deleted is deleted: neither the topic nor its records come back after a crash. What cannot be deleted in the time that
the client gives is not (REQUEST_TIMED_OUT). Source: KIP-4, KIP-516; Kafka's ControllerApis.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from uuid import UUID

from tagwire import messages
from tagwire.broker.deadlines import TIMED_OUT, batches, deadline, is_over
from tagwire.broker.quotas.throttles import Mutations
from tagwire.broker.registry import Call, handles
from tagwire.broker.topic import Topic
from tagwire.errors import Error, KafkaError
from tagwire.rpc.version_gates import DELETE_TOPICS_IDS, DELETE_TOPICS_THROTTLED

Request = messages.DeleteTopicsRequest
Response = messages.DeleteTopicsResponse

NO_ID = UUID(int=0)

_TWICE = KafkaError(Error.INVALID_REQUEST, "a topic can be named once in a request")


@handles(Request, versions="1-6")
async def delete_topics(call: Call[Request]) -> Response:
    request = call.request
    if call.version >= DELETE_TOPICS_IDS:
        requested = [(state.name, state.topic_id) for state in request.topics]
    else:
        requested = [(name, NO_ID) for name in request.topic_names]
    until = deadline(request)
    mutations = call.broker.throttles.mutations(call, DELETE_TOPICS_THROTTLED)
    results: list[Response.DeletableTopicResult] = []
    times = Counter(requested)
    results += [_refusal(name, topic_id, _TWICE) for (name, topic_id), named in times.items() if named > 1]
    once = [one for one, named in times.items() if named == 1]
    by_both = _named_by_both(call, once, times)
    results += [_refusal(name, topic_id, _TWICE) for name, topic_id in by_both.items()]
    once = [(name, one) for name, one in once if name not in by_both and one not in by_both.values()]
    for some in batches(once, lambda one: _weight(call, *one)):
        if is_over(until):
            results += [_refusal(name, topic_id, TIMED_OUT) for name, topic_id in some]
        else:
            results += await _delete(call, some, mutations)
    return Response(responses=results, throttle_time_ms=mutations.throttle_time_ms)


def _named_by_both(
    call: Call[Request], names: Iterable[tuple[str | None, UUID]], ids: Container[tuple[str | None, UUID]]
) -> dict[str, UUID]:
    """The topics that are named by their names, and by their ids as well."""
    found = (call.broker.topics.get(name) for name, topic_id in names if name is not None and topic_id == NO_ID)
    return {topic.name: topic.topic_id for topic in found if topic is not None and (None, topic.topic_id) in ids}


def _weight(call: Call[Request], name: str | None, topic_id: UUID) -> int:
    topics = call.broker.topics
    found = topics.by_id(topic_id) if name is None else topics.get(name)
    return len(found.partitions) if found is not None else 1


async def _delete(
    call: Call[Request], some: Sequence[tuple[str | None, UUID]], mutations: Mutations
) -> list[Response.DeletableTopicResult]:
    """The outcomes for some topics, which are deleted together."""
    found: dict[tuple[str | None, UUID], Topic] = {}
    outcomes: dict[tuple[str | None, UUID], Topic | KafkaError] = {}
    for requested in some:
        try:
            topic = _named(call, *requested)
            mutations.count(len(topic.partitions))
            found[requested] = topic
        except KafkaError as error:
            outcomes[requested] = error
    outcomes.update(zip(found, await call.broker.topics.delete_all(list(found.values()))))
    return [
        Response.DeletableTopicResult(name=outcome.name, topic_id=outcome.topic_id)
        if isinstance(outcome, Topic)
        else _refusal(*requested, outcome)
        for requested in some
        for outcome in (outcomes[requested],)
    ]


def _refusal(name: str | None, topic_id: UUID, error: KafkaError) -> Response.DeletableTopicResult:
    return Response.DeletableTopicResult(
        name=name, topic_id=topic_id, error_code=error.code, error_message=error.message or None
    )


def _named(call: Call[Request], name: str | None, topic_id: UUID) -> Topic:
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
