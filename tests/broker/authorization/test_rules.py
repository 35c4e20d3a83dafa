"""What APIs ask for, where one broker alone shows it; tests/interop/test_authorization.py holds every one to Kafka."""

from __future__ import annotations

import pytest

from tagwire import messages
from tagwire.broker import Broker
from tagwire.broker.authorization.rules import RULES
from tagwire.broker.served_apis import SERVED
from tagwire.errors import Error
from tagwire.rpc import api_of
from tagwire.rpc.gate import BEFORE
from tagwire.spec.api_keys import API_NAMES, ApiKey

from ..asking import commit
from .people import (
    ALLOW,
    CREATE,
    DELETE,
    DENY,
    DESCRIBE,
    GROUP,
    OPTIONS,
    PREFIXED,
    READ,
    SUPER,
    WRITE,
    creation,
    delete,
    grant,
    login,
    meant,
)

FORBIDDEN = Error.TOPIC_AUTHORIZATION_FAILED


def test_every_api_that_is_served_has_a_rule_and_no_rule_is_of_another():
    assert set(RULES) == set(SERVED)


def asking(struct, version, kind):
    """A request for one of everything, named as topic "t" is; of another number than 0 none is said."""
    made = {}
    for field in struct.fields:
        if version in field.versions:
            one = NAMED.get(field.type.element) if field.struct is None else asking(field.struct, version, kind)
            if one is not None:
                made[field.attribute] = [one] if field.type.is_array else one
    return (kind if struct is kind.spec.root else getattr(kind, struct.name))(**made)


NAMED = {"string": "t", "int32": 0, "bytes": b""}


@pytest.mark.parametrize("key", sorted(set(SERVED) - BEFORE), ids=lambda key: API_NAMES[key])
def test_who_may_do_nothing_is_answered_in_every_version(alice, key):
    lowest, highest = SERVED[key]
    for version in range(lowest, highest + 1):
        kind = getattr(messages, f"{API_NAMES[key]}Request")
        request = asking(kind.spec.root, version, kind)
        if key == ApiKey.PRODUCE:
            request.acks = 1
        assert alice.ask(request, version).spec.name == f"{API_NAMES[key]}Response"


def test_that_there_are_no_groups_of_kip_848_is_told_before_what_guards_a_group(connect):
    with Broker(**OPTIONS, as_release="3.9") as broker:
        alice = login(connect(broker.bootstrap), "alice")
        beat = alice.ask(messages.ConsumerGroupHeartbeatRequest(group_id="g", member_id="", member_epoch=0), 0)
        described = alice.ask(messages.ConsumerGroupDescribeRequest(group_ids=["g"]), 0)
    assert (beat.error_code, described.groups[0].error_code) == (Error.UNSUPPORTED_VERSION,) * 2


@pytest.fixture(scope="module")
def shared():
    with Broker(**OPTIONS) as broker:
        yield broker


@pytest.fixture
def admin(shared, connect):
    """A super user's wire, to a broker with topics "t" and "u", and no ACLs."""
    wire = login(connect(shared.bootstrap), SUPER)
    delete(wire, meant())
    for name in ("t", "u"):
        wire.create(name)
    return wire


@pytest.fixture
def alice(shared, admin, connect):
    return login(connect(shared.bootstrap), "alice")


def test_a_producer_gets_outcomes_for_what_it_may_write_and_refusals_for_the_rest(admin, alice, make):
    grant(admin, creation("t", WRITE))
    request = make.produce("t", make.records(b"a"))
    request.topic_data += make.produce("u", make.records(b"a")).topic_data
    results = {one.name: one.partition_responses[0] for one in alice.ask(request, 9).responses}
    assert (results["t"].error_code, results["u"].error_code) == (0, FORBIDDEN)
    assert results["u"].base_offset == -1


def test_a_producer_without_acknowledgements_hears_of_a_refusal_by_the_end_of_its_connection(admin, alice, make):
    grant(admin, creation("t", WRITE))
    end = admin.offset_at("t", -1).offset
    request = make.produce("t", make.records(b"a"), acks=0)
    request.topic_data += make.produce("u", make.records(b"a"), acks=0).topic_data
    alice.send(request, 9)
    assert alice.is_closed()
    assert admin.offset_at("t", -1).offset == end + 1


def test_transactional_batches_are_not_written_without_the_transactional_id(admin, alice):
    from tagwire.records import Record, write

    grant(admin, creation("t", WRITE))
    records = write([Record(None, b"a")], producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    request = messages.ProduceRequest
    data = request.PartitionProduceData(index=0, records=records)
    topics = [request.TopicProduceData(name="t", partition_data=[data])]
    for name in (None, "mine"):
        answer = alice.ask(request(transactional_id=name, acks=-1, timeout_ms=1000, topic_data=topics), 9)
        assert answer.responses[0].partition_responses[0].error_code == Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_a_fetch_session_reads_no_further_when_its_acl_is_gone(admin, alice, make):
    grant(admin, creation("t"))
    assert admin.produce("t", make.records(b"a")).error_code == 0
    first = alice.ask(make.fetch("t", 0, session_id=0, session_epoch=0), 12)
    assert first.responses[0].partitions[0].error_code == 0
    delete(admin, meant())
    request = messages.FetchRequest(max_wait_ms=0, min_bytes=1, session_id=first.session_id, session_epoch=1, topics=[])
    again = alice.ask(request, 12)
    assert again.responses[0].partitions[0].error_code == FORBIDDEN
    assert not again.responses[0].partitions[0].records


def test_who_pretends_to_be_a_replica_needs_the_cluster(admin, alice, make):
    grant(admin, creation("t"))
    assert alice.fetch("t", 0, replica_id=2).error_code == FORBIDDEN


@pytest.mark.parametrize("version", [0, 1, 4, 9, 12])
def test_metadata_of_all_topics_leaves_out_what_may_not_be_described(admin, alice, version):
    grant(admin, creation("t", DESCRIBE))
    names = [] if version == 0 else None
    request = messages.MetadataRequest(topics=names, allow_auto_topic_creation=True)
    assert [topic.name for topic in alice.ask(request, version).topics] == ["t"]


@pytest.mark.parametrize("version", [0, 1, 4, 9, 12])
def test_metadata_of_a_topic_that_may_not_be_described_says_nothing_of_it(admin, alice, version):
    for name in ("u", "missing"):
        (topic,) = alice.metadata(name, version=version).topics
        assert (topic.error_code, topic.name, topic.partitions, topic.topic_id.int) == (FORBIDDEN, name, [], 0)
    assert [topic.name for topic in admin.metadata().topics if topic.name == "missing"] == []


def test_metadata_by_id_tells_the_id_and_no_name(admin, alice):
    topic_id = admin.metadata("u").topics[0].topic_id
    request = messages.MetadataRequest
    named = [request.MetadataRequestTopic(name=None, topic_id=topic_id)]
    (topic,) = alice.ask(request(topics=named), 12).topics
    assert (topic.error_code, topic.name, topic.topic_id) == (FORBIDDEN, None, topic_id)


def test_metadata_by_id_with_the_name_of_another_topic_goes_by_the_id(admin, alice):
    topic_id = admin.metadata("u").topics[0].topic_id
    request = messages.MetadataRequest
    named = [request.MetadataRequestTopic(name="t", topic_id=topic_id)]
    (topic,) = alice.ask(request(topics=named), 12).topics
    assert (topic.error_code, topic.name, topic.topic_id) == (FORBIDDEN, None, topic_id)


def test_metadata_by_id_before_version_12_tells_nobody_whether_the_topic_may_be_described(admin, alice):
    topic_id = admin.metadata("u").topics[0].topic_id
    kind = messages.MetadataRequest
    request = kind(
        topics=[kind.MetadataRequestTopic(name="u"), kind.MetadataRequestTopic(name=None, topic_id=topic_id)]
    )
    for client in (admin, alice):
        assert [topic.error_code for topic in client.ask(request, 11).topics] == [Error.INVALID_REQUEST] * 2


def test_of_a_group_that_is_not_there_no_topic_is_told(admin, alice):
    grant(admin, creation("*", DELETE, kind=GROUP), creation("t", READ))
    kind = messages.OffsetDeleteRequest
    named = [
        kind.OffsetDeleteRequestTopic(name=name, partitions=[kind.OffsetDeleteRequestPartition(partition_index=0)])
        for name in ("t", "u")
    ]
    answer = alice.ask(kind(group_id="missing", topics=named), 0)
    assert (answer.error_code, answer.topics) == (Error.GROUP_ID_NOT_FOUND, [])
    commit(admin, "there", 3)
    answer = alice.ask(kind(group_id="there", topics=named), 0)
    assert {each.name: each.partitions[0].error_code for each in answer.topics} == {"t": 0, "u": FORBIDDEN}


def test_a_topic_is_made_by_metadata_for_whoever_may_create_it(admin, alice):
    grant(admin, creation("new-", DESCRIBE, pattern=PREFIXED))
    (topic,) = alice.metadata("new-1", create=True).topics
    assert topic.error_code == FORBIDDEN
    (topic,) = alice.metadata("new-1").topics
    assert topic.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    grant(admin, creation("new-", CREATE, pattern=PREFIXED))
    (topic,) = alice.metadata("new-1", create=True).topics
    assert topic.error_code == 0


def test_what_may_be_done_is_told_to_whoever_asks(admin, alice):
    grant(admin, creation("t", READ), creation("t", DESCRIBE, DENY))
    request = messages.MetadataRequest
    asked = request(topics=None, include_topic_authorized_operations=True)
    assert alice.ask(asked, 12).topics == []
    grant(admin, creation("u", READ))
    (topic,) = alice.ask(asked, 12).topics
    assert (topic.name, topic.topic_authorized_operations) == ("u", 1 << READ | 1 << DESCRIBE)


def test_topics_are_walked_through_past_one_that_may_not_be_described(admin, alice):
    admin.create("v")
    grant(admin, creation("t", DESCRIBE), creation("v", DESCRIBE))
    request = messages.DescribeTopicPartitionsRequest
    cursor = request.Cursor(topic_name="u", partition_index=0)
    every = alice.ask(request(topics=[], response_partition_limit=100, cursor=cursor), 0)
    assert [topic.name for topic in every.topics] == ["v"]
    names = [request.TopicRequest(name=name) for name in ("t", "u", "v")]
    some = alice.ask(request(topics=names, response_partition_limit=100, cursor=cursor), 0)
    assert {(topic.name, topic.error_code) for topic in some.topics} == {("v", 0), ("u", FORBIDDEN)}
    delete(admin, meant())
    assert alice.ask(request(topics=[], response_partition_limit=100, cursor=None), 0).topics == []


def test_whether_a_topic_exists_is_not_told_to_whoever_deletes_without_right(admin, alice):
    grant(admin, creation("seen", DESCRIBE))
    request = messages.DeleteTopicsRequest
    names = [request.DeleteTopicState(name=name) for name in ("t", "missing", "seen")]
    answer = alice.ask(request(topics=names, timeout_ms=1000), 6)
    assert {one.name: one.error_code for one in answer.responses} == {
        "t": FORBIDDEN,
        "missing": FORBIDDEN,
        "seen": Error.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert admin.metadata("t").topics[0].error_code == 0


@pytest.mark.parametrize("version", [5, 6])
def test_a_topic_that_is_named_twice_is_deleted_by_nobody(admin, alice, version):
    request = messages.DeleteTopicsRequest
    topic_id = admin.metadata("t").topics[0].topic_id
    asked = [request(topic_names=["t", "t"], timeout_ms=1000)]
    if version == 6:
        states = [request.DeleteTopicState(name="t"), request.DeleteTopicState(topic_id=topic_id)]
        asked = [request(topics=[state, state], timeout_ms=1000) for state in states]
    for wire in (alice, admin):
        for each in asked:
            assert [one.error_code for one in wire.ask(each, version).responses] == [Error.INVALID_REQUEST]
    assert admin.metadata("t").topics[0].error_code == 0


def test_an_api_that_a_program_added_asks_for_what_it_likes(admin, alice, shared):
    shared.register(
        api_of(messages.ListGroupsRequest, messages.ListGroupsResponse), lambda call: messages.ListGroupsResponse()
    )
    assert alice.ask(messages.ListGroupsRequest(), 4).error_code == 0


def test_where_it_is_asked_for_everybody_may_do_what_no_acl_is_about(connect):
    options = {**OPTIONS, "allow_everyone_if_no_acl_found": True}
    with Broker(**options) as broker:
        admin, alice = (login(connect(broker.bootstrap), name) for name in (SUPER, "alice"))
        assert alice.create("t").error_code == 0
        grant(admin, creation("t", READ, ALLOW, principal="User:bob"))
        assert alice.metadata().topics == []


def test_without_authentication_acls_are_about_the_anonymous_principal(connect):
    with Broker(authorizer="StandardAuthorizer", super_users="User:ANONYMOUS") as broker:
        assert connect(broker.bootstrap).create("t").error_code == 0
    with Broker(authorizer="StandardAuthorizer") as broker:
        assert connect(broker.bootstrap).create("t").error_code == FORBIDDEN


def test_a_request_about_two_groups_is_answered_for_the_one_that_may_be_described(admin, alice):
    grant(admin, creation("g", DESCRIBE, kind=GROUP))
    answer = alice.ask(messages.DescribeGroupsRequest(groups=["g", "h"], include_authorized_operations=True), 5)
    told = {group.group_id: (group.error_code, group.authorized_operations) for group in answer.groups}
    assert told == {"g": (0, 1 << DESCRIBE), "h": (Error.GROUP_AUTHORIZATION_FAILED, -(2**31))}


def test_offsets_of_a_group_that_is_named_twice_are_of_topics_that_may_be_described(admin, alice):
    grant(admin, creation("twice", DESCRIBE, kind=GROUP))
    commit(admin, "twice", 7)
    request = messages.OffsetFetchRequest
    one = request.OffsetFetchRequestGroup(
        group_id="twice",
        topics=[request.OffsetFetchRequestTopics(name="t", partition_indexes=[0])],
    )
    whole = request.OffsetFetchRequestGroup(group_id="twice", topics=None)
    for named in ([one, whole], [whole, one]):
        for group, answer in zip(named, alice.ask(request(groups=named), 9).groups, strict=True):
            told = [topic.partitions[0].error_code for topic in answer.topics]
            assert (answer.error_code, told) == (0, [] if group is whole else [FORBIDDEN])


def test_a_group_that_is_named_twice_and_may_not_be_described_is_refused_twice(admin, alice):
    request = messages.OffsetFetchRequest
    groups = [request.OffsetFetchRequestGroup(group_id="twice", topics=None) for _ in range(2)]
    told = [(group.group_id, group.error_code) for group in alice.ask(request(groups=groups), 9).groups]
    assert told == [("twice", Error.GROUP_AUTHORIZATION_FAILED)] * 2


def test_deny_is_for_one_host_and_not_for_others(admin, alice):
    grant(admin, creation("t"), creation("t", READ, DENY, host="10.1.2.3"))
    assert alice.fetch("t", 0).error_code == 0
    grant(admin, creation("t", READ, DENY, host="127.0.0.1"))
    assert alice.fetch("t", 0).error_code == FORBIDDEN


def test_a_regular_expression_stands_for_topics_that_its_member_may_describe(admin, alice):
    grant(admin, creation("g", READ, kind=GROUP), creation("t"))
    request = messages.ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=10_000,
        subscribed_topic_names=None,
        subscribed_topic_regex="t|u",
        topic_partitions=[],
    )
    (had,) = alice.ask(request, 1).assignment.topic_partitions
    assert had.topic_id == admin.metadata("t").topics[0].topic_id


@pytest.mark.parametrize("options", [{}, {"as_release": "3.9"}])
def test_without_an_authorizer_nothing_is_asked(connect, make, monkeypatch, options):
    def asked(*arguments):
        raise AssertionError

    for module in ("network.dispatch", "handlers.fetch", "handlers.consumer_group_heartbeat"):
        monkeypatch.setattr(f"tagwire.broker.{module}.Access", asked)
    with Broker(**options) as broker:
        wire = connect(broker.bootstrap)
        wire.create("t")
        assert wire.produce("t", make.records(b"a")).error_code == 0
        assert wire.fetch("t", 0).error_code == 0
        assert [topic.name for topic in wire.metadata().topics] == ["t"]
