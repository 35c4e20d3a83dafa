"""The options of the data source: what is allowed, what it means, what is said when it is wrong."""

from __future__ import annotations

import pytest

from tagwire.errors import ConfigError
from tagwire.partitions import EARLIEST, LATEST
from tagwire.spark.segments.options import parse_segment_options
from tagwire.spark.sink.options import parse as parse_sink
from tagwire.spark.source.offset_limits import TimestampLimit
from tagwire.spark.source.options import batch_bounds, parse, stream_start
from tagwire.spark.tables.table_settings import TableSettings

BROKER = {"kafka.bootstrap.servers": "127.0.0.1:9092"}
FLIGHTS = {**BROKER, "subscribe": "flights"}


def test_defaults_are_those_of_sparks_kafka_connector():
    options = parse(FLIGHTS)
    assert options.selection.subscribe == ("flights",)
    assert options.client == {"bootstrap.servers": "127.0.0.1:9092"}
    assert options.fail_on_data_loss is True
    assert options.rows.include_headers is False
    assert options.max_offsets_per_trigger is None
    assert options.min_partitions is None
    assert batch_bounds(options) == (EARLIEST, LATEST)
    assert stream_start(options) == LATEST


def test_names_are_matched_in_any_case_because_spark_lowers_them():
    options = parse({"KAFKA.Bootstrap.Servers": "h:1", "subscribePATTERN": "fl.*", "includeheaders": "TRUE"})
    assert options.selection.pattern == "fl.*"
    assert options.rows.include_headers is True


def test_kafka_properties_pass_without_their_prefix():
    assert parse({**FLIGHTS, "kafka.client.id": "me"}).client["client.id"] == "me"


@pytest.mark.parametrize("options", [{"path": "/lake/flights"}, {"paths": '["a","b"]'}])
def test_a_path_of_load_is_refused_since_a_topic_has_none(options):
    with pytest.raises(ConfigError, match=r"^option paths?='.*': the format tagwire has no paths; subscribe, "):
        parse({**FLIGHTS, **options})


def test_assigned_partitions_are_sorted():
    assert parse({**BROKER, "assign": '{"b":[2,0],"a":[1]}'}).selection.assign == {"b": (0, 2), "a": (1,)}


def test_subscribed_topics_are_trimmed_and_named_once():
    assert parse({**BROKER, "subscribe": "a, b,a"}).selection.subscribe == ("a", "b")


def test_topics_are_named_as_sparks_kafka_connector_takes_names():
    assert parse({**BROKER, "subscribe": "a,, b ,"}).selection.subscribe == ("a", "b")
    assert parse({**BROKER, "subscribePattern": " fl.ghts "}).selection.matches("flights")
    of_files = parse_segment_options({"path": "/d", "subscribe": "a,, b ,"})
    assert of_files.topics == ("a", "b")
    assert parse_segment_options({"path": "/d", "subscribePattern": " a.* "}).takes("ab")
    assert parse_sink({**BROKER, "topic": " flights "}).topic == "flights"


def test_a_pattern_has_to_match_the_whole_name():
    selection = parse({**BROKER, "subscribePattern": "fl.ghts|x"}).selection
    assert [t for t in ("flights", "flights2", "myflights", "x") if selection.matches(t)] == ["flights", "x"]


def test_offsets_per_partition_are_read_with_their_marks():
    options = parse(
        {**FLIGHTS, "startingOffsets": '{"flights":{"0":23,"10":-2}}', "endingOffsets": '{"flights":{"0":-1}}'}
    )
    assert batch_bounds(options) == ({("flights", 0): 23, ("flights", 10): EARLIEST}, {("flights", 0): LATEST})


def test_of_several_bounds_the_connectors_first_one_counts():
    one, each = {"startingTimestamp": "5"}, {"startingOffsetsByTimestamp": '{"t":{"0":7}}'}
    offsets = {"startingOffsets": "earliest"}
    assert parse({**FLIGHTS, **offsets, **each, **one}).starting == TimestampLimit(5, "startingTimestamp", False)
    assert parse({**FLIGHTS, **offsets, **each}).starting == TimestampLimit(
        {("t", 0): 7}, "startingOffsetsByTimestamp", False
    )
    lenient = parse({**FLIGHTS, **one, "startingOffsetsByTimestampStrategy": "latest"})
    assert lenient.starting == TimestampLimit(5, "startingTimestamp", True)
    assert parse({**FLIGHTS, "endingTimestamp": "9"}).ending == TimestampLimit(9, "endingTimestamp", True)


def test_what_the_driver_and_the_trigger_wait_for_is_read_as_spark_writes_it():
    options = parse({**FLIGHTS, "maxTriggerDelay": "2m", "fetchOffset.numRetries": "0", "minOffsetsPerTrigger": "9"})
    assert (options.max_trigger_delay, options.retries, options.min_offsets_per_trigger) == (120.0, 0, 9)
    assert parse({**FLIGHTS, "kafkaConsumer.pollTimeoutMs": "700"}).client["request.timeout.ms"] == "700"
    assert parse({**FLIGHTS, "groupIdPrefix": "p", "kafka.group.id": "g"}).group is None


def test_secrets_of_the_client_are_not_shown():
    assert "hunter2" not in repr(parse({**FLIGHTS, "kafka.sasl.jaas.config": "hunter2"}))


def test_secrets_of_the_registry_are_not_shown_of_what_a_table_is_to_have():
    values = {"value.format": "avro", "schema.registry.basic.auth.user.info": "loader:hunter2"}
    assert "hunter2" not in repr(TableSettings(values=values))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({**FLIGHTS, "startingTimestamp": "now"}, "startingTimestamp='now': needs milliseconds"),
        ({**FLIGHTS, "endingOffsetsByTimestamp": '{"t":{"0":-1}}'}, "t-0 has no time -1"),
        ({**FLIGHTS, "startingOffsetsByTimestampStrategy": "x"}, "needs error or latest"),
        ({**FLIGHTS, "minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "4"}, "is more than maxOffsetsPerTrigger"),
        ({**FLIGHTS, "maxTriggerDelay": "soon"}, "maxTriggerDelay='soon': needs a time"),
        ({**FLIGHTS, "groupId": " "}, "groupId='': needs the name"),
        ({"subscribe": "t"}, "kafka.bootstrap.servers: missing"),
        ({"subscribe": "t", "kafka.bootstrap.servers": " "}, "kafka.bootstrap.servers: missing"),
        (BROKER, "assign or subscribe or subscribePattern: missing"),
        ({**FLIGHTS, "assign": '{"t":[0]}'}, "assign and subscribe: set together"),
        ({**FLIGHTS, "startingOfsets": "latest"}, "startingOfsets: unknown; nearest are startingOffsets,"),
        ({**FLIGHTS, "provider": "tagwire"}, "option provider: comes from CREATE TABLE ... USING"),
        ({**FLIGHTS, "dialect": "int-headers", "register": "/no/such.toml"}, "/no/such.toml: No such file"),
        (
            {**FLIGHTS, "dialect": "int-headers", "register": "a.toml,,b.toml"},
            "register='a.toml,,b.toml': needs the path",
        ),
        ({**FLIGHTS, "includeHeaders": "yes"}, "includeHeaders='yes': needs true or false"),
        ({**FLIGHTS, "failOnDataLoss": ""}, "failOnDataLoss='': needs true or false"),
        ({**FLIGHTS, "maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger='0': needs a whole number above 0"),
        ({**FLIGHTS, "maxOffsetsPerTrigger": "1e3"}, "maxOffsetsPerTrigger='1e3'"),
        ({**FLIGHTS, "minPartitions": "-1"}, "minPartitions='-1'"),
        ({**FLIGHTS, "minPartitions": "9" * 30}, "minPartitions="),
        ({**FLIGHTS, "kafka.auto.offset.reset": "earliest"}, "kafka.auto.offset.reset: cannot be set"),
        ({**FLIGHTS, "kafka.key.deserializer": "x"}, "kafka.key.deserializer: cannot be set"),
        (
            {**FLIGHTS, "kafka.secruity.protocol": "SSL"},
            "secruity.protocol: no property of a Kafka client; security.protocol is one",
        ),
        ({**BROKER, "subscribe": " , "}, "subscribe=' , '"),
        ({**BROKER, "subscribe": ""}, "subscribe=''"),
        ({**BROKER, "subscribePattern": "("}, "subscribePattern='(': not a regular expression"),
        ({**BROKER, "subscribePattern": ""}, "subscribePattern=''"),
        ({**BROKER, "subscribePattern": " "}, "subscribePattern=' ': needs a regular expression"),
        ({**BROKER, "assign": "flights"}, "assign='flights'"),
        ({**BROKER, "assign": "{}"}, "names no topic"),
        ({**BROKER, "assign": '{"t":[]}'}, "'t' needs its partitions"),
        ({**BROKER, "assign": '{"t":[0,0]}'}, "'t' needs its partitions, each once"),
        ({**BROKER, "assign": '{"t":[true]}'}, "'t' needs its partitions"),
        ({**BROKER, "assign": '{"t":["0"]}'}, "'t' needs its partitions"),
        ({**FLIGHTS, "startingOffsets": "first"}, "startingOffsets='first'"),
        ({**FLIGHTS, "startingOffsets": "[]"}, "not a JSON object"),
        ({**FLIGHTS, "startingOffsets": '{"t":3}'}, "topic 't' needs its partitions"),
        ({**FLIGHTS, "startingOffsets": '{"t":{"0":-3}}'}, "t-0 has no offset -3"),
        ({**FLIGHTS, "startingOffsets": '{"t":{"0":1.5}}'}, "t-0 has no offset 1.5"),
        ({**FLIGHTS, "startingOffsets": '{"t":{"0":true}}'}, "t-0 has no offset True"),
        ({**FLIGHTS, "startingOffsets": '{"t":{"00":1}}'}, "'t' has no partition '00'"),
        ({**FLIGHTS, "startingOffsets": '{"t":{"0":1,"0":2}}'}, "stands there twice"),
        ({**FLIGHTS, "endingOffsets": "[" * 100_000}, "endingOffsets="),
    ],
)
def test_a_wrong_option_is_named_in_one_line(options, said):
    with pytest.raises(ConfigError) as caught:
        parse(options)
    assert said in str(caught.value)
    assert str(caught.value).startswith("option ")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    "extra", [{"startingOffsets": "latest"}, {"startingOffsets": '{"flights":{"0":-1}}'}, {"endingOffsets": "earliest"}]
)
def test_a_batch_read_of_nothing_is_refused(extra):
    options = parse({**FLIGHTS, **extra})
    with pytest.raises(ConfigError, match=next(iter(extra))):
        batch_bounds(options)


def test_a_batch_read_shows_its_progress_in_no_group():
    options = parse({**FLIGHTS, "groupId": "g"})
    assert stream_start(options) == LATEST
    with pytest.raises(ConfigError, match="option groupId: only for streaming reads"):
        batch_bounds(options)


@pytest.mark.parametrize(
    ("view", "extra"),
    [
        ("batches", {"isolation": "read_committed"}),
        ("batches", {"includeHeaders": "true"}),
        ("batches", {"value.format": "json", "value.schema": "a int"}),
        ("offsets", {"headers.columns": "origin"}),
        ("metadata", {"includeHeaders": "true"}),
    ],
)
def test_what_only_records_have_is_refused_of_other_views(view, extra):
    parse_segment_options({"path": "/d", **extra})
    with pytest.raises(ConfigError, match=f"^option {next(iter(extra))}: is of the view records; the view {view} has"):
        parse_segment_options({"path": "/d", "view": view, **extra})
    plain = {"includeHeaders": "false", "isolation": "read_uncommitted"}
    assert parse_segment_options({"path": "/d", "view": view, **plain}).view == view


def test_a_stream_has_no_end():
    with pytest.raises(ConfigError, match="endingOffsets: only for batch"):
        stream_start(parse({**FLIGHTS, "endingOffsets": "latest"}))


def test_a_stream_may_start_at_the_latest_of_one_partition():
    options = parse({**FLIGHTS, "startingOffsets": '{"flights":{"0":-1}}'})
    assert stream_start(options) == {("flights", 0): LATEST}
