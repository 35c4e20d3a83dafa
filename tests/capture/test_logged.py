"""What a line of a request log tells of a request and its answer, in the form of any release; secrets it does not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tagwire.capture import Logged, Losses
from tagwire.capture.logged import SECRET, logged

ENDS = " from connection 10.0.0.1:9092-10.0.0.9:61040-0;totalTime:2.5,requestQueueTime:0.1,principal:User:a"


def line(body: str) -> bytes:
    return f"[2026-11-20 03:04:05,678] DEBUG Completed request:{body} (kafka.request.logger)\n".encode()


def kip_673(api: int, request: object, response: object, **changes: object) -> bytes:
    document = {
        "requestHeader": {"requestApiKey": api, "requestApiVersion": 1, "correlationId": 7, "clientId": "c"},
        "request": request,
        "response": response,
        "connection": "10.0.0.1:9092-10.0.0.9:61040-0",
        "totalTimeMs": 2.5,
        "principal": "User:a",
        **changes,
    }
    return line(json.dumps(document))


def read(*lines: bytes) -> Logged:
    losses = Losses()
    (found,) = logged(lines, "log", losses, bodies=True)
    assert not losses.counts
    return found


def test_a_line_has_both_bodies_the_number_and_the_time_that_it_took():
    found = read(kip_673(3, {"topics": None}, {"topics": [{"errorCode": 3}]}))
    assert (found.seen.api_key, found.correlation_id, found.took) == (3, 7, 2500)
    assert found.request == {"topics": None}
    assert found.response == {"topics": [{"errorCode": 3}]}
    assert found.seen.error_codes == (3,)


@pytest.mark.parametrize(
    "body",
    [
        "RequestHeader(apiKey=FETCH, apiVersion=8, clientId=correlationId=9, correlationId=6) -- {a=1},response:{b=2}",
        "RequestHeader(apiKey=FETCH, apiVersion=8, clientId=c, correlationId=6, headerVersion=1) -- {a=1}"
        ",response:{b=2}",
        "{api_key=1,api_version=2,correlation_id=6,client_id=correlation_id=9} -- {a=1},response:{b=2}",
    ],
)
def test_the_textual_forms_tell_the_same(body: str):
    found = read(line(body + ENDS))
    assert (found.correlation_id, found.took, found.request, found.response) == (6, 2500, "{a=1}", "{b=2}")


def test_the_oldest_form_tells_a_number_and_a_time_and_has_no_bodies():
    found = read(line("Name: FetchRequest; Version: 0; CorrelationId: 6; ClientId: c; MaxWait: 500 ms" + ENDS))
    assert (found.correlation_id, found.took, found.request, found.response) == (6, 2500, None, None)


def test_bodies_are_left_out_where_nobody_asks_for_them():
    for one in (kip_673(3, {}, {}), line("{api_key=3,api_version=2,correlation_id=6,client_id=c} -- {a=1}" + ENDS)):
        (found,) = logged([one], "log", Losses())
        assert (found.request, found.response, found.took) == (None, None, 2500)


@pytest.mark.parametrize("time", [1e308, -1, None])
def test_what_a_line_does_not_tell_or_cannot_mean_is_none(time: float | None):
    found = read(kip_673(3, 5, None, totalTimeMs=time))
    assert (found.seen.api_key, found.took, found.request, found.response) == (3, None, None, None)


HMAC = {"errorCode": 0, "tokenId": "t", "hmac": "c3dvcmRmaXNo", "unheardOf": "swordfish"}
CONFIGS = [
    {"name": "sasl.jaas.config", "configOperation": 0, "value": "swordfish"},
    {"name": "retention.ms", "configOperation": 0, "value": "5"},
]


def test_secrets_are_taken_out_of_bodies_and_all_else_stays():
    assert read(kip_673(38, {}, HMAC)).response == {"errorCode": 0, "tokenId": "t", "hmac": SECRET}
    found = read(kip_673(44, {"resources": [{"resourceType": 2, "resourceName": "t", "configs": CONFIGS}]}, {}))
    assert found.request["resources"][0]["configs"] == [CONFIGS[0] | {"value": SECRET}, CONFIGS[1]]
    scram = {"upsertions": [{"name": "alice", "iterations": 4096, "salt": "c3dvcmRmaXNo", "saltedPassword": "eA=="}]}
    (shown,) = read(kip_673(51, scram, {})).request["upsertions"]
    assert shown == {"name": "alice", "iterations": 4096, "salt": SECRET, "saltedPassword": SECRET}


@pytest.mark.parametrize(
    "request_body",
    [{"resources": ["swordfish"]}, {"resources": {"x": "swordfish"}}, {"resources": [{"configs": ["swordfish"]}]}],
)
def test_what_has_another_shape_than_its_message_gives_nothing_away(request_body: dict[str, Any]):
    assert "swordfish" not in str(read(kip_673(44, request_body, {})))


def test_text_of_what_may_hold_secrets_is_left_out_as_a_whole_and_so_is_what_nobody_knows():
    found = read(
        line(
            "RequestHeader(apiKey=CREATE_DELEGATION_TOKEN, apiVersion=1, clientId=c, correlationId=6) -- "
            "{max_life_time=1},response:{hmac=swordfish}" + ENDS
        )
    )
    assert (found.request, found.response) == ("{max_life_time=1}", SECRET)
    found = read(kip_673(9999, {"password": "swordfish"}, {"password": "swordfish"}))
    assert (found.request, found.response) == (SECRET, SECRET)
