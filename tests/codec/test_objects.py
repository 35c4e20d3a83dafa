"""Message objects: mutable records, made by keywords, compared by value, copied and pickled."""

from __future__ import annotations

import copy
import gc
import inspect
import json
import pickle
from typing import Any
from uuid import UUID

import pytest

from tagwire import kernel, message_class, messages
from tagwire.codec import MessageObject, Structure
from tagwire.errors import EncodeError, SpecError
from tagwire.spec import Versions, catalog
from tagwire.spec.model import RESERVED_ATTRIBUTES

Request = messages.CreateTopicsRequest
Topic = Request.CreatableTopic
Metadata = messages.MetadataRequest

SPEC = """
{ "type": "data", "name": "Note", "validVersions": "0-1", "flexibleVersions": "1+", "fields": [
  { "name": "Lines", "type": "[]Line", "versions": "0+", "fields": [
    { "name": "Text", "type": "string", "versions": "0+", "nullableVersions": "0+" } ] },
  { "name": "Log", "type": "records", "versions": "0+", "nullableVersions": "0+" } ] }
"""


def example() -> Any:
    topic = Topic(name="t", num_partitions=3, replication_factor=1, unknown_tags={7: b"x"})
    topic.configs.append(Request.CreatableTopicConfig(name="k", value=None))
    return Request(topics=[topic], timeout_ms=5000)


def fetched(data: bytes = b"abc") -> Any:
    response = messages.FetchResponse
    partition = response.PartitionData(partition_index=1, records=data, aborted_transactions=None)
    full = response(responses=[response.FetchableTopicResponse(topic="t", partitions=[partition])])
    return response.decode(full.encode(12), 12)


# -- making


def test_fields_left_out_get_their_default() -> None:
    request = Metadata()
    assert (request.topics, request.allow_auto_topic_creation) == ([], True)
    assert Topic().replication_factor == 0
    assert messages.FetchRequest().isolation_level == 0
    assert messages.FetchResponse.PartitionData().diverging_epoch == messages.FetchResponse.EpochEndOffset()


def test_fields_are_given_by_keyword_only() -> None:
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
        Metadata([])  # type: ignore[misc]
    with pytest.raises(TypeError, match="unexpected keyword argument 'Topics'"):
        Metadata(Topics=[])  # type: ignore[call-arg]


def test_the_signature_shows_the_defaults() -> None:
    signature = str(inspect.signature(Metadata))
    assert signature.startswith("(*, topics=..., allow_auto_topic_creation=True, ")
    assert signature.endswith(", unknown_tags=None)")


def test_a_misspelt_attribute_is_an_error() -> None:
    with pytest.raises(AttributeError):
        Metadata().topic = []  # type: ignore[attr-defined]


def test_structs_are_attributes_of_their_message() -> None:
    assert Topic.__qualname__ == "CreateTopicsRequest.CreatableTopic"
    assert issubclass(Topic, Structure)
    assert not issubclass(Topic, MessageObject)
    assert isinstance(example(), MessageObject)


def test_a_class_says_what_it_is() -> None:
    assert (Request.__name__, Request.api_key, Request.valid_versions) == ("CreateTopicsRequest", 19, Versions(0, 7))
    assert [Request.spec.is_flexible(version) for version in (4, 5)] == [False, True]
    assert (Request.__module__, messages.request(19), messages.response(19)) == (
        "tagwire.messages",
        Request,
        messages.CreateTopicsResponse,
    )
    assert messages.RequestHeader.api_key == -1


def test_message_classes_are_looked_up_by_name() -> None:
    assert messages.MetadataRequest is Metadata
    assert "MetadataRequest" in dir(messages)
    with pytest.raises(AttributeError, match="has no message 'NoSuchRequest'"):
        _ = messages.NoSuchRequest
    for look_up in (messages.request, messages.response):
        with pytest.raises(KeyError):
            look_up(-1)


def test_message_classes_cannot_be_subclassed() -> None:
    with pytest.raises(TypeError, match=r"CreateTopicsRequest\.CreatableTopic cannot be subclassed"):
        type("Mine", (Topic,), {})
    with pytest.raises(TypeError, match="MetadataRequest cannot be subclassed"):
        type("Mine", (Metadata,), {})


# -- comparing and showing


def test_objects_are_equal_by_value() -> None:
    assert example() == example()
    for change in (
        lambda request: setattr(request, "timeout_ms", 1),
        lambda request: setattr(request.topics[0], "name", "u"),
        lambda request: request.topics[0].unknown_tags.clear(),
        lambda request: request.unknown_tags.update({1: b""}),
        lambda request: request.topics.append(Topic()),
    ):
        other = example()
        change(other)
        assert other != example()


def test_objects_of_other_classes_are_never_equal() -> None:
    assert messages.ResponseHeader(correlation_id=1) != messages.EndTxnMarker()
    assert Metadata() != {}
    assert Metadata().__eq__(7) is NotImplemented


def test_objects_cannot_be_hashed() -> None:
    for value in (Metadata(), Topic()):
        with pytest.raises(TypeError, match="unhashable type"):
            hash(value)


def test_the_repr_names_every_field_that_a_call_would() -> None:
    config = "CreateTopicsRequest.CreatableTopicConfig(name='k', value=None)"
    assert repr(example()) == (
        "CreateTopicsRequest(topics=[CreateTopicsRequest.CreatableTopic(name='t', num_partitions=3, "
        f"replication_factor=1, assignments=[], configs=[{config}], unknown_tags={{7: b'x'}})], "
        "timeout_ms=5000, validate_only=False)"
    )
    assert eval(repr(example()), {"CreateTopicsRequest": Request}) == example()


def test_the_repr_of_records_is_their_size() -> None:
    assert "records=<3 bytes>" in repr(fetched())


SECRETS = [
    messages.SaslAuthenticateRequest(auth_bytes=b"hunter2"),
    messages.SaslAuthenticateResponse(auth_bytes=b"hunter2"),
    messages.CreateDelegationTokenResponse(hmac=b"hunter2"),
    messages.RenewDelegationTokenRequest(hmac=b"hunter2"),
    messages.ExpireDelegationTokenRequest(hmac=b"hunter2"),
    messages.DescribeDelegationTokenResponse(
        tokens=[messages.DescribeDelegationTokenResponse.DescribedDelegationToken(hmac=b"hunter2")]
    ),
    messages.AlterUserScramCredentialsRequest(
        upsertions=[
            messages.AlterUserScramCredentialsRequest.ScramCredentialUpsertion(salt=b"a", salted_password=b"hunter2")
        ]
    ),
    messages.UserScramCredentialRecord(salt=b"hunter2", stored_key=b"hunter2", server_key=b"hunter2"),
    messages.EnvelopeRequest(request_principal=b"hunter2", request_data=b"hunter2"),
    messages.EnvelopeResponse(response_data=b"hunter2"),
]


@pytest.mark.parametrize("message", SECRETS, ids=lambda message: type(message).__name__)
def test_the_repr_hides_secrets(message: Structure) -> None:
    assert "hunter2" not in repr(message)
    assert "<secret>" in repr(message)


Altered = messages.IncrementalAlterConfigsRequest.AlterableConfig
Described = messages.DescribeConfigsResponse.DescribeConfigsResourceResult
SETTINGS = [
    messages.AlterConfigsRequest.AlterableConfig,
    Altered,
    messages.ConfigRecord,
    messages.CreateTopicsRequest.CreatableTopicConfig,
    messages.CreateTopicsResponse.CreatableTopicConfigs,
    messages.DescribeConfigsResponse.DescribeConfigsSynonym,
    Described,
]


@pytest.mark.parametrize("kind", SETTINGS, ids=lambda kind: kind.__qualname__)
@pytest.mark.parametrize(
    "name",
    [
        "ssl.keystore.password",
        "listener.name.internal.ssl.key.password",
        "sasl.jaas.config",
        "listener.name.external.scram-sha-256.sasl.jaas.config",
        "password.encoder.secret",
        "delegation.token.master.key",
        "ssl.keystore.key",
        "ssl.keystore.certificate.chain",
        "ssl.truststore.certificates",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "basic.auth.user.info",
        "MY_API_TOKEN",
    ],
)
def test_the_repr_hides_what_a_setting_of_a_secret_name_is_set_to(kind: Any, name: str) -> None:
    assert repr(kind(name=name, value="hunter2")).count("<secret>") >= 1
    assert "hunter2" not in repr(kind(name=name, value="hunter2"))
    assert name in repr(kind(name=name, value="hunter2"))


@pytest.mark.parametrize("kind", SETTINGS, ids=lambda kind: kind.__qualname__)
@pytest.mark.parametrize(
    "name", ["retention.ms", "password.encoder.iterations", "delegation.token.max.lifetime.ms", ""]
)
def test_the_repr_shows_every_other_setting(kind: Any, name: str) -> None:
    assert "value='42'" in repr(kind(name=name, value="42"))


def test_the_repr_hides_a_setting_that_the_broker_calls_sensitive_and_its_synonyms() -> None:
    synonym = messages.DescribeConfigsResponse.DescribeConfigsSynonym(name="vendor.thing", value="hunter2")
    described = Described(name="vendor.thing", value="hunter2", is_sensitive=True, synonyms=[synonym])
    assert "hunter2" not in repr(messages.DescribeConfigsResponse.DescribeConfigsResult(configs=[described]))
    described.is_sensitive = False
    assert repr(described).count("hunter2") == 2


def test_every_struct_of_the_catalog_that_holds_a_setting_hides_secret_ones() -> None:
    """A setting is text under a name or key; numbers under a key are quotas."""
    shown = []
    for message in map(catalog.message, catalog.names()):
        for struct in message.all_structs():
            types = {field.name: str(field.type) for field in struct.fields}
            if types.get("Value") != "string" or "string" not in (types.get("Name"), types.get("Key")):
                continue
            kind = getattr(messages, message.name)
            made = (kind if struct is message.root else getattr(kind, struct.name))(value="hunter2")
            setattr(made, "name" if "Name" in types else "key", "sasl.jaas.config")
            shown += [struct.name] if "hunter2" in repr(made) else []
    assert shown == []


def test_no_field_of_the_catalog_that_sounds_secret_is_shown() -> None:
    """Metadata about secrets is no secret: mechanisms, iterations, token ids and owners, timestamps."""
    words = ("hmac", "salt", "password", "auth_bytes", "stored_key", "server_key", "principal_bytes")
    shown = []
    for name in catalog.names():
        kind = getattr(messages, name)
        for struct in (kind, *(getattr(kind, nested.name) for nested in kind.spec.structs)):
            text = repr(struct())
            shown += [(name, field) for field in struct.__slots__ if field in words and f"{field}=<secret>" not in text]
    assert shown == []


def test_objects_match_patterns_by_attribute() -> None:
    match example():
        case Request(topics=[Topic(name=name, num_partitions=count)], timeout_ms=5000):
            assert (name, count) == ("t", 3)
        case _:
            pytest.fail("no match")
    assert Topic.__match_args__ == ("name", "num_partitions", "replication_factor", "assignments", "configs")


# -- copying


def same_of_another_identity(one: Any, other: Any) -> None:
    assert other == one
    assert type(other) is type(one)
    assert other is not one


def test_a_copy_shares_what_it_holds_but_not_itself() -> None:
    request = example()
    request.unknown_tags[5] = b""
    other = copy.copy(request)
    same_of_another_identity(request, other)
    assert other.topics is request.topics
    other.timeout_ms = 1
    other.unknown_tags[6] = b""
    assert (request.timeout_ms, list(request.unknown_tags)) == (5000, [5])


def test_a_deep_copy_shares_nothing() -> None:
    request = example()
    other = copy.deepcopy(request)
    same_of_another_identity(request, other)
    other.topics[0].name = "u"
    other.topics[0].configs.clear()
    other.topics[0].unknown_tags[9] = b""
    assert request == example()


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_of_a_catalog_message_is_read_back(protocol: int) -> None:
    for value in (example(), example().topics[0], fetched()):
        data = pickle.dumps(value, protocol)
        same_of_another_identity(value, pickle.loads(data))


@pytest.mark.parametrize("records", [b"abc", b"", None])
def test_views_of_records_are_copied_and_pickled_as_bytes(records: bytes | None) -> None:
    """A view cannot be pickled, and would keep the whole fetch alive."""
    response = fetched(records)  # type: ignore[arg-type]
    for other in (copy.deepcopy(response), pickle.loads(pickle.dumps(response))):
        same_of_another_identity(response, other)
        copied = other.responses[0].partitions[0].records
        assert copied is None if records is None else type(copied) is bytes
    kept = copy.copy(response.responses[0].partitions[0])
    assert kept.records is response.responses[0].partitions[0].records


def test_unknown_tags_that_are_views_are_copied_and_pickled_as_bytes() -> None:
    request = Metadata(unknown_tags={20: memoryview(b"abc")[1:]})  # type: ignore[dict-item]
    for other in (copy.deepcopy(request), pickle.loads(pickle.dumps(request))):
        assert other.unknown_tags == {20: b"bc"}
        assert type(other.unknown_tags[20]) is bytes


def test_objects_of_a_users_spec_are_copied_and_pickled() -> None:
    note = message_class(SPEC)
    value = note(lines=[note.Line(text="a", unknown_tags={1: b"x"}), note.Line(text=None)], log=memoryview(b"l"))
    for other in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        same_of_another_identity(value, other)
    same_of_another_identity(value.lines[0], pickle.loads(pickle.dumps(value.lines[0])))
    same_of_another_identity(value.lines[0], copy.deepcopy(value.lines[0]))


def test_equal_specs_share_one_class() -> None:
    assert message_class(SPEC) is message_class(SPEC)
    assert message_class(SPEC) is not message_class(SPEC.replace("Note", "Memo"))


def test_a_users_class_is_made_of_a_model_a_path_or_text(tmp_path: Any) -> None:
    path = tmp_path / "Note.json"
    path.write_text(SPEC)
    note = message_class(SPEC)
    assert message_class(path) is message_class(str(path)) is message_class(note.spec) is note
    with pytest.raises(SpecError, match="<text>: name is missing"):
        message_class("{}")


# -- names that need care


def test_attributes_that_python_or_the_classes_need_get_an_underscore() -> None:
    names = ["class", "Encode", "Decode", "Self", "UnknownTags", "ToJson", "None", "Def"]
    fields = [{"name": name, "type": "int32", "versions": "0+"} for name in names]
    spec = {"type": "data", "name": "Odd", "validVersions": "0", "flexibleVersions": "none", "fields": fields}
    odd = message_class(json.dumps(spec))
    value = odd(class_=1, encode_=2, decode_=3, self_=4, unknown_tags_=5, to_json_=6, none=7, def_=8)
    assert odd.decode(value.encode(0), 0) == value
    assert value.to_json(0) == dict(zip(["class", "encode", "decode", "self"], [1, 2, 3, 4])) | {
        "unknownTags": 5,
        "toJson": 6,
        "none": 7,
        "def": 8,
    }
    assert pickle.loads(pickle.dumps(value)) == copy.deepcopy(value) == value


def test_every_method_of_a_message_is_a_reserved_attribute() -> None:
    public = {name for name in dir(MessageObject) if not name.startswith("_")}
    assert public <= RESERVED_ATTRIBUTES


@pytest.mark.parametrize("name", ["spec", "ApiKey", "validVersions"])
def test_a_field_that_would_hide_what_a_class_says_of_itself_is_refused(name: str) -> None:
    text = SPEC.replace('"Log"', f'"{name}"')
    with pytest.raises(SpecError, match=f"Note, {name}: its attribute would hide the class's own"):
        message_class(text)
    nested = message_class(SPEC.replace('"Text"', f'"{name}"'))
    assert nested.decode(nested(lines=[nested.Line()]).encode(0), 0).lines == [nested.Line()]


# -- attributes that are gone


@pytest.mark.parametrize(("version", "field"), [(12, "topics"), (1, "topics"), (0, "allow_auto_topic_creation")])
def test_an_attribute_that_was_deleted_cannot_be_written(version: int, field: str) -> None:
    request = Metadata()
    delattr(request, field)
    with pytest.raises(EncodeError, match=f"MetadataRequest v{version}, {field}: is not set"):
        request.encode(version)


def test_a_deleted_attribute_in_a_tag_or_a_default_struct_cannot_be_written() -> None:
    response = messages.ApiVersionsResponse()
    del response.finalized_features_epoch
    with pytest.raises(EncodeError, match="ApiVersionsResponse v3, finalized_features_epoch: is not set"):
        response.encode(3)
    fetch = fetched()
    del fetch.responses[0].partitions[0].diverging_epoch.epoch
    path = r"responses\[0\]\.partitions\[0\]\.diverging_epoch"
    with pytest.raises(EncodeError, match=f"FetchResponse v12, {path}: is not set"):
        fetch.encode(12)


def test_an_object_that_was_never_made_cannot_be_written() -> None:
    with pytest.raises(EncodeError, match="is not set"):
        Metadata.__new__(Metadata).encode(12)
    with pytest.raises(EncodeError, match="is not set"):
        messages.NoOpRecord.__new__(messages.NoOpRecord).encode(0)


def test_an_attribute_set_again_is_written() -> None:
    request = Metadata()
    del request.topics
    request.topics = None
    assert request.encode(1) == b"\xff\xff\xff\xff"


# -- what passes for a message


class Pretender:
    """isinstance believes it; its memory does not look like a topic's."""

    @property
    def __class__(self) -> type:  # type: ignore[override]
        return Topic


@pytest.mark.parametrize("other", [Pretender(), Request.CreatableTopicConfig(), {"name": "t"}, None, "t", Topic])
def test_only_objects_of_the_very_class_are_written(other: Any) -> None:
    with pytest.raises(EncodeError) as caught:
        Request(topics=[Topic(name="t"), other]).encode(7)
    name = type(other).__name__
    assert (
        str(caught.value)
        == f"CreateTopicsRequest v7, topics[1]: needs a CreateTopicsRequest.CreatableTopic, not {name}"
    )


def test_a_struct_of_another_message_with_the_same_name_is_refused() -> None:
    response = messages.OffsetCommitRequest.OffsetCommitRequestTopic
    with pytest.raises(EncodeError, match=r"topics\[0\]: needs a "):
        messages.OffsetFetchRequest(topics=[response()]).encode(1)


# -- the garbage collector's lists


def parts_of(value: Any) -> list[Any]:
    """An object, and every object and list in it."""
    if isinstance(value, list):
        return [value, *(part for item in value for part in parts_of(item))]
    if isinstance(value, Structure):
        return [value, *(part for name in value.__slots__ for part in parts_of(getattr(value, name)))]
    return [value] if isinstance(value, UUID) and value.int else []


def test_decoded_objects_are_left_out_of_the_garbage_collectors_lists_when_compiled() -> None:
    request = Request.decode(example().encode(7), 7)
    topic_id = messages.MetadataRequest.MetadataRequestTopic(topic_id=UUID(int=5), name=None)
    metadata = Metadata.decode(Metadata(topics=[topic_id]).encode(12), 12)
    parts = [part for value in (request, fetched(), metadata) for part in parts_of(value)]
    assert len(parts) >= 19
    assert {gc.is_tracked(part) for part in parts} == {not kernel.compiled}


def test_objects_made_by_hand_are_tracked() -> None:
    assert gc.is_tracked(example())
