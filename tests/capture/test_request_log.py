"""Request logs of every age: what a line says, and what becomes of lines that say nothing."""

from __future__ import annotations

import json
from datetime import timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tagwire.capture import Endpoint, Losses, Observation
from tagwire.capture.request_log import BROKEN, FORWARDED, LONG, MAX_LINE_BYTES, NOISE, observations

CLIENT, BROKER = Endpoint("10.0.0.9", 61040), Endpoint("10.0.0.1", 9092)
TIMES = (
    "totalTime:2.4,requestQueueTime:0.1,localTime:2.1,remoteTime:0.0,throttleTime:0,responseQueueTime:0.1,sendTime:0.1"
)
TAIL = (
    f" from connection 10.0.0.1:9092-10.0.0.9:61040-0;{TIMES},securityProtocol:SASL_SSL,principal:User:CN=a,OU=b,"
    "listener:EXTERNAL"
)


def kip_673(api: int = 0, version: int = 9, **changes: object) -> str:
    document = {
        "isForwarded": False,
        "requestHeader": {
            "requestApiKey": api,
            "requestApiVersion": version,
            "correlationId": 7,
            "clientId": 'bil"ling é',
            "requestApiKeyName": "PRODUCE",
        },
        "request": {"acks": -1},
        "response": {"responses": [{"partitionResponses": [{"errorCode": 0}, {"errorCode": 6}]}], "throttleTimeMs": 0},
        "connection": "10.0.0.1:9092-10.0.0.9:61040-0-3",
        "totalTimeMs": 2.4,
        "securityProtocol": "SASL_SSL",
        "principal": "User:CN=a,OU=b",
        "listener": "EXTERNAL",
        "clientInformation": {"softwareName": "apache-kafka-java", "softwareVersion": "3.9.0"},
        **changes,
    }
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def line(body: str, prefix: str = "[2026-11-20 03:04:05,678] DEBUG ", suffix: str = " (kafka.request.logger)") -> str:
    return f"{prefix}Completed request:{body}{suffix}\n"


def read(*lines: str | bytes, **settings: object) -> tuple[list[Observation], dict[str, int]]:
    losses = Losses()
    raw = [one.encode() if isinstance(one, str) else one for one in lines]
    return list(observations(raw, "log", losses, **settings)), dict(losses.counts)  # type: ignore[arg-type]


def one(*lines: str, **settings: object) -> Observation:
    found, lost = read(*lines, **settings)
    assert not lost
    assert len(found) == 1
    return found[0]


def test_a_json_line_tells_who_asked_what_and_how_it_ended() -> None:
    seen = one(line(kip_673()))
    assert (seen.client, seen.broker, seen.client_id) == (CLIENT, BROKER, 'bil"ling é')
    assert (seen.software_name, seen.software_version) == ("apache-kafka-java", "3.9.0")
    assert (seen.principal, seen.listener) == ("User:CN=a,OU=b", "EXTERNAL")
    assert (seen.api_key, seen.api_version, seen.error_codes, seen.offered) == (0, 9, (6,), None)


def test_a_request_for_versions_tells_its_software_itself_and_what_was_offered() -> None:
    seen = one(
        line(
            kip_673(
                18,
                3,
                request={"clientSoftwareName": "librdkafka", "clientSoftwareVersion": "2.3.0"},
                response={"errorCode": 0, "apiKeys": [{"apiKey": 0, "minVersion": 3, "maxVersion": 12}]},
                clientInformation={"softwareName": "unknown", "softwareVersion": "unknown"},
            )
        )
    )
    assert (seen.software_name, seen.software_version) == ("librdkafka", "2.3.0")
    assert seen.offered == {0: (3, 12)}
    assert seen.error_codes == ()


OLD = {
    "2.0 to 2.6": (
        "RequestHeader(apiKey=JOIN_GROUP, apiVersion=1, clientId=a, b), correlationId=6) -- {group_id=g},"
        "response:{throttle_time_ms=0,error_code=25}" + TAIL,
        (11, 1, "a, b)", (25,), "", "User:CN=a,OU=b", "EXTERNAL"),
    ),
    "2.6 with what the client told": (
        "RequestHeader(apiKey=METADATA, apiVersion=9, clientId=c, correlationId=6, headerVersion=2) -- {},"
        f"response:{{}}{TAIL},clientInformation:ClientInformation(softwareName=apache-kafka-java, "
        "softwareVersion=2.6.0)",
        (3, 9, "c", (), "apache-kafka-java", "User:CN=a,OU=b", "EXTERNAL"),
    ),
    "0.10 and 0.11": (
        "{api_key=3,api_version=1,correlation_id=0,client_id=producer-1} -- {topics=[x]}" + TAIL,
        (3, 1, "producer-1", None, "", "User:CN=a,OU=b", "EXTERNAL"),
    ),
    "0.9": (
        "Name: FetchRequest; Version: 0; CorrelationId: 3; ClientId: old; MaxWait: 500 ms; RequestInfo: [t,0] -> x"
        f" from connection 10.0.0.1:9092-10.0.0.9:61040;{TIMES},securityProtocol:PLAINTEXT,principal:User:ANONYMOUS",
        None,
    ),
    "a coordinator by its old name": (
        "RequestHeader(apiKey=GROUP_COORDINATOR, apiVersion=0, clientId=c, correlationId=1) -- {}" + TAIL,
        (10, 0, "c", None, "", "User:CN=a,OU=b", "EXTERNAL"),
    ),
}


@pytest.mark.parametrize("age", [age for age, (_, expected) in OLD.items() if expected])
def test_the_text_of_older_releases_is_read(age: str) -> None:
    body, expected = OLD[age]
    seen = one(line(body))
    told = (
        seen.api_key,
        seen.api_version,
        seen.client_id,
        seen.error_codes,
        seen.software_name,
        seen.principal,
        seen.listener,
    )
    assert told == expected
    assert (seen.client, seen.broker) == (CLIENT, BROKER)


@pytest.mark.parametrize(
    "more",
    [",temporaryMemoryBytes:69", ",messageConversionsTime:0.05", ",temporaryMemoryBytes:69,messageConversionsTime:1.5"],
)
def test_what_follows_the_principal_where_records_were_converted_is_not_of_it(more: str) -> None:
    body = "RequestHeader(apiKey=PRODUCE, apiVersion=2, clientId=c, correlationId=6) -- {},response:{}" + TAIL
    software = ",clientInformation:ClientInformation(softwareName=kgo, softwareVersion=1)"
    assert one(line(body + software + more)) == one(line(body + software))
    assert one(line(body + more)) == one(line(body))
    assert one(line(body + more)).principal == "User:CN=a,OU=b"


def test_the_text_of_an_answer_tells_what_was_offered_and_that_of_a_request_its_software() -> None:
    asked = "RequestHeader(apiKey=API_VERSIONS, apiVersion=3, clientId=c, correlationId=1) -- "
    software = "{client_software_name=kgo,client_software_version=v1.2,_tagged_fields={}}"
    offers = "{api_key=0,min_version=0,max_version=8,_tagged_fields={}},{api_key=18,min_version=0,max_version=3}"
    unknown = ",clientInformation:ClientInformation(softwareName=unknown, softwareVersion=unknown)"
    seen = one(line(f"{asked}{software},response:{{error_code=0,api_keys=[{offers}]}}{TAIL}{unknown}"))
    assert (seen.software_name, seen.software_version) == ("kgo", "v1.2")
    assert seen.offered == {0: (0, 8), 18: (0, 3)}
    assert one(line(f"{asked}{{}},response:{{error_code=35,api_versions=[]}}{TAIL}{unknown}")).offered is None
    fetch = asked.replace("API_VERSIONS", "FETCH")
    assert one(line(f"{fetch}{software},response:{{[{offers}]}}{TAIL}")).offered is None


def test_a_request_that_was_handed_on_is_counted_where_it_came_in_and_not_twice() -> None:
    found, lost = read(line(kip_673(19, 7)), line(kip_673(19, 7, isForwarded=True)))
    assert (len(found), lost) == (1, {FORWARDED: 1})


@pytest.mark.parametrize("nothing", ["", None])
def test_a_request_that_has_no_response_is_told_as_that(nothing: str | None) -> None:
    """Kafka writes an empty text for what there is not: with acks=0 there is no response, and what came before the log
    was switched on is not kept."""
    produced = one(line(kip_673(response=nothing)))
    assert (produced.api_key, produced.error_codes, produced.offered) == (0, None, None)
    asked = one(line(kip_673(18, 3, request=nothing, response=nothing)))
    assert (asked.error_codes, asked.offered, asked.software_name) == (None, None, "apache-kafka-java")


def test_the_text_of_0_9_whose_connections_have_no_number_is_read() -> None:
    seen = one(line(OLD["0.9"][0]))
    assert (seen.api_key, seen.api_version, seen.client_id, seen.principal) == (1, 0, "old", "User:ANONYMOUS")
    assert (seen.client, seen.broker) == (CLIENT, BROKER)


OLDEST = {
    "ProducerRequest; Version: 1; CorrelationId: 2; ClientId: c; RequiredAcks: 1; AckTimeoutMs: 1000 ms": (0, 1, "c"),
    "TopicMetadataRequest; Version: 0; CorrelationId: 2; ClientId: c": (3, 0, "c"),
    "OffsetRequest; Version: 0; CorrelationId: 2; ClientId: c; ReplicaId: -1": (2, 0, "c"),
    "ControlledShutdownRequest; Version: 0; CorrelationId: 2; BrokerId: 1": (7, 0, None),
    "LeaderAndIsrRequest;Version:0;Controller:1;ControllerEpoch:3;CorrelationId:2;ClientId:c;Leaders:x": (4, 0, "c"),
}


@pytest.mark.parametrize("body", OLDEST)
@pytest.mark.parametrize("form", ["0.9", "0.8"])
def test_each_request_of_the_oldest_releases_is_read_by_the_name_it_had(form: str, body: str) -> None:
    end = "connection 10.0.0.1:9092-10.0.0.9:61040" if form == "0.9" else "client /10.0.0.9:61040"
    seen = one(line(f"Name: {body} from {end};{TIMES}"))
    assert (seen.api_key, seen.api_version, seen.client_id) == OLDEST[body]
    assert (seen.client, seen.broker) == (CLIENT, BROKER if form == "0.9" else Endpoint())


def test_an_election_of_leaders_is_read_by_its_first_name() -> None:
    body = "RequestHeader(apiKey=ELECT_PREFERRED_LEADERS, apiVersion=0, clientId=c, correlationId=6) -- {}"
    assert one(line(body + TAIL)).api_key == 43


@pytest.mark.parametrize(
    ("connection", "client", "broker"),
    [
        ("10.0.0.1:9092-10.0.0.9:61040-0", CLIENT, BROKER),
        ("10.0.0.1:9092-10.0.0.9:61040-0-12", CLIENT, BROKER),
        (
            "fd00:0:0:0:0:0:0:1:9092-fd00:0:0:0:0:0:0:9:5-1",
            Endpoint("fd00::9", 5),  # as packets of the same client have it
            Endpoint("fd00::1", 9092),
        ),
    ],
)
def test_connections_are_told_by_their_ends(connection: str, client: Endpoint, broker: Endpoint) -> None:
    seen = one(line(kip_673(connection=connection)))
    assert (seen.client, seen.broker) == (client, broker)


BASE = 1_763_607_845_000_000  # 2025-11-20 03:04:05 UTC


@pytest.mark.parametrize(
    ("prefix", "time"),
    [
        ("[2025-11-20 03:04:05,678] DEBUG ", BASE + 678_000),
        ("2025-11-20T03:04:05.678901Z DEBUG ", BASE + 678_901),
        ("2025-11-20T05:04:05+02:00 ", BASE),
        ("[2025-11-20 05:04:05,5 +0200] ", BASE + 500_000),
        ("[data-plane-kafka-request-handler-0] DEBUG ", -1),
        ("[2025-13-45 99:99:99,000] DEBUG ", -1),
        ("9999-12-31T23:59:59-01:00 ", -1),  # in UTC a year that no calendar has
        ("1969-12-31T23:59:00Z ", -1),
    ],
)
def test_times_are_found_in_the_patterns_that_logs_have(prefix: str, time: int) -> None:
    assert one(line(kip_673(), prefix)).time == time


def test_times_without_a_zone_are_of_the_zone_given() -> None:
    zone = timezone(timedelta(hours=2))
    assert one(line(kip_673(), "[2025-11-20 05:04:05,000] DEBUG "), timezone=zone).time == BASE


def test_a_line_that_a_shipper_wrapped_in_json_is_unwrapped() -> None:
    inner = line(kip_673(), "[2025-11-20 03:04:05,000] DEBUG ").rstrip("\n")
    for key in ("message", "log", "msg"):
        seen = one(json.dumps({"stream": "stdout", key: inner}) + "\n")
        assert (seen.api_key, seen.time, seen.client_id) == (0, BASE, 'bil"ling é')


def test_other_lines_are_counted_as_noise_and_blank_ones_not() -> None:
    found, lost = read("[2026] INFO started\n", "\n", "  at java.lang.Thread.run\n", line(kip_673()))
    assert len(found) == 1
    assert lost == {NOISE: 2}
    assert found[0].place.position == len("[2026] INFO started\n\n  at java.lang.Thread.run\n")


def test_a_line_cut_anywhere_is_broken_or_noise_and_never_half_an_observation() -> None:
    for body in (kip_673(), OLD["2.0 to 2.6"][0]):
        whole = line(body)
        complete = len(whole) - len(" (kafka.request.logger)\n") + (0 if body[0] == "{" else -len(",listener:EXTERNAL"))
        for cut in range(1, complete - 1):
            found, lost = read(whole[:cut])
            assert not found or body[0] != "{", whole[:cut]
            assert sum(lost.values()) + len(found) == 1


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{}",
        "{]",
        '{"requestHeader":{"requestApiKey":"x"}}',
        kip_673(connection="nowhere"),
        kip_673(connection="a:1-b:99999-0"),
        kip_673(api=70_000),
        kip_673(version=40_000),
        "RequestHeader(apiKey=NO_SUCH_API, apiVersion=1, clientId=c, correlationId=1) -- {}" + TAIL,
        "RequestHeader(apiKey=METADATA, apiVersion=1, clientId=c, correlationId=1) -- {}",
    ],
)
def test_a_broken_line_is_counted_and_the_next_one_read(body: str) -> None:
    found, lost = read(line(body), line(kip_673()))
    assert len(found) == 1
    assert lost == {BROKEN: 1}


def test_bytes_that_are_no_text_are_counted_or_replaced_and_raise_nothing() -> None:
    whole = line(kip_673()).encode()
    for at in range(0, len(whole), 3):
        found, lost = read(whole[:at] + b"\xff" + whole[at + 1 :])
        assert len(found) + sum(lost.values()) == 1


HEADER = '{"requestHeader":{"requestApiKey":18,"requestApiVersion":3,"clientId":"c"},"connection":"h:1-h:2-0",'
DEEP, DIGITS = "[" * 100_000 + "]" * 100_000, "9" * 10_000
TEXT = "RequestHeader(apiKey=FETCH, apiVersion=4, clientId=c, correlationId=6) -- {}"
HARMFUL = {
    "nested in a body": HEADER + f'"request":{{"a":{DEEP}}}}}',
    "nested in a header": '{"requestHeader":' * 100_000 + "}" * 100_000,
    "nested in a shipper's object": None,
    "a version of many digits": TEXT.replace("=4", f"={DIGITS}") + TAIL,
    "an API of many digits": TEXT.replace("FETCH", DIGITS) + TAIL,
    "a port of many digits": TEXT + TAIL.replace("61040", DIGITS),
    "a long connection": TEXT + TAIL.replace("10.0.0.9", "1:1-" * 50_000),
    "a long client id": TEXT.replace("clientId=c", "clientId=" + "c" * 40_000) + TAIL,
}
REPEATED = (",principal:", ",temporaryMemoryBytes:1", ",listener:L", " (a", " ", ",clientInformation:", ";", DIGITS)


@pytest.mark.parametrize("name", HARMFUL)
def test_a_line_that_means_harm_is_broken_and_the_next_one_is_read(name: str) -> None:
    bad = HARMFUL[name]
    harmful = json.dumps({"message": "Completed request:"})[:-1].encode() + b',"x":' + DEEP.encode() + b"}\n"
    found, lost = read(harmful if bad is None else line(bad), line(TEXT + TAIL))
    assert (len(found), lost) == (1, {BROKEN: 1})


@pytest.mark.parametrize("part", REPEATED, ids=lambda part: part[:12])
def test_a_line_that_repeats_a_part_takes_no_longer_than_it_is_long(part: str) -> None:
    """Were it gone through for each of them, this would not end."""
    for after in ("", "!", ")"):
        read(line(TEXT + TAIL + part * (400_000 // len(part)) + after))


def test_error_codes_and_versions_that_do_not_fit_are_left_out() -> None:
    offered = [{"apiKey": 3, "minVersion": 0, "maxVersion": 10**12}, {"apiKey": 1, "minVersion": 0, "maxVersion": 9}]
    answer = {"errorCode": 99_999, "apiKeys": offered, "a": [{"errorCode": 35}, {"errorCode": int(DIGITS[:4000])}]}
    seen = one(line(HEADER + f'"response":{json.dumps(answer)}}}'))
    assert (seen.error_codes, seen.offered) == ((35,), {1: (0, 9)})


@given(st.data())
def test_damaged_lines_raise_nothing_and_are_counted(data: st.DataObject) -> None:
    whole = data.draw(st.sampled_from([line(kip_673(18, 3)), *(line(body) for body, told in OLD.values() if told)]))
    bad = bytearray(whole.encode())
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(bad) - 2))
        piece = data.draw(st.sampled_from([b'"', b"}", b"-1", b"\xff", b";", b",", b"9" * 30, b"\\ud800", b"null"]))
        bad[at : at + data.draw(st.integers(0, 5))] = piece
    lines = bytes(bad).splitlines(keepends=True)
    found, lost = read(*lines)
    assert len(found) + sum(lost.values()) == sum(bool(one.strip()) for one in lines)


def test_the_rest_of_a_line_that_is_longer_than_is_read_is_no_line_of_its_own() -> None:
    pieces = [bytes(MAX_LINE_BYTES + 1), bytes(MAX_LINE_BYTES + 1), line(kip_673(version=3))]
    found, lost = read(*pieces, line(kip_673(version=9)))
    assert [seen.api_version for seen in found] == [9]
    assert found[0].place.position == sum(map(len, map(str.encode, pieces[2:]))) + 2 * (MAX_LINE_BYTES + 1)
    assert lost == {LONG: 1}
