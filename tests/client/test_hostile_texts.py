"""Texts of a server's in errors: escaped and cut, so that none ends a line of a log, steers a terminal or fills one."""

from __future__ import annotations

from typing import Any

import pytest

from tagwire import messages
from tagwire.cli import main
from tagwire.client import Admin, Client, NewTopic, Producer
from tagwire.errors import AuthenticationError, DecodeError, Error, KafkaError, TagwireError

from .fake_broker import FakeCluster
from .produce_responses import produced, refusing
from .test_security import SASL, login

EVIL = "\x1b[2J\x1b]0;owned\x07line\r\nERROR another line\u202e\u0085\x00" + "x" * 30_000


def tame(error: BaseException) -> str:
    said = str(error)
    assert said.isprintable()
    assert len(said) < 3000
    assert r"\x1b[2J" in said
    return said


@pytest.mark.parametrize(
    "answer",
    [
        refusing(Error.INVALID_RECORD, EVIL),
        lambda message: produced(
            message,
            error_code=Error.INVALID_RECORD,
            record_errors=[
                messages.ProduceResponse.BatchIndexAndErrorMessage(batch_index=0, batch_index_error_message=EVIL)
            ],
        ),
    ],
    ids=["of a batch", "of a record"],
)
def test_a_refusal_of_records_is_one_tame_line(answer: Any) -> None:
    with FakeCluster() as cluster:
        cluster.topic("t")
        cluster.script("Produce", answer)
        producer = Producer(cluster.bootstrap)
        with pytest.raises(KafkaError) as raised:
            producer.send("t", b"v").result(30)
        assert tame(raised.value).startswith("INVALID_RECORD (87): 1 record, ")
        assert raised.value.message.isprintable()
        with pytest.raises(KafkaError):
            producer.close()


def test_a_record_that_is_refused_without_a_word_is_named() -> None:
    entry = messages.ProduceResponse.BatchIndexAndErrorMessage(batch_index=0, batch_index_error_message=None)
    with FakeCluster() as cluster:
        cluster.topic("t")
        cluster.script("Produce", lambda m: produced(m, error_code=Error.INVALID_RECORD, record_errors=[entry]))
        with Producer(cluster.bootstrap) as producer:
            sent = producer.send("t", b"v")
            with pytest.raises(KafkaError, match=r"record 0: refused$"):
                producer.flush()
            assert sent.done()


def test_a_refusal_of_an_administrators_is_one_tame_line() -> None:
    kind = messages.CreateTopicsResponse
    answer = kind(topics=[kind.CreatableTopicResult(name="t", error_code=Error.INVALID_CONFIG, error_message=EVIL)])
    with FakeCluster() as cluster:
        cluster.script("CreateTopics", lambda message: answer)
        with Admin(cluster.bootstrap) as admin, pytest.raises(KafkaError) as raised:
            admin.create_topics([NewTopic("t")])
        tame(raised.value)


@pytest.mark.parametrize("step", ["SaslHandshake", "SaslAuthenticate"])
def test_a_refusal_of_credentials_is_one_tame_line(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tagwire.rpc import Gate

    def refuse(self: Any, request: Any) -> Any:
        if step == "SaslHandshake":
            evil = [EVIL, *["PLAIN"] * 100_000]
            return messages.SaslHandshakeResponse(error_code=Error.UNSUPPORTED_SASL_MECHANISM, mechanisms=evil)
        return messages.SaslAuthenticateResponse(error_code=Error.SASL_AUTHENTICATION_FAILED, error_message=EVIL)

    monkeypatch.setattr(Gate, "handshake" if step == "SaslHandshake" else "authenticate", refuse)
    with FakeCluster(sasl=SASL) as cluster, Client(cluster.bootstrap, **login("PLAIN")) as client:
        with pytest.raises(AuthenticationError) as raised:
            client.metadata()
        tame(raised.value)


def test_an_error_that_names_a_topic_of_a_brokers_is_one_line() -> None:
    with FakeCluster() as cluster:
        cluster.topic("t")
        lie = cluster._Metadata(messages.MetadataRequest(topics=None), 0)
        lie.topics[0].name = "t\x1b[2J\n"
        lie.topics += lie.topics
        cluster.script("Metadata", lambda message: lie)
        with Client(cluster.bootstrap) as client, pytest.raises(TagwireError) as raised:
            client.metadata()
        tame(raised.value)


def test_a_path_from_the_wire_is_escaped_in_what_an_error_says() -> None:
    error = DecodeError("bad \n", path="topics['\x1b[2J']", offset=3)
    assert str(error) == r"topics['\x1b[2J'] at byte 3: bad \n"
    assert str(error.under("row\n1")).isprintable()


@pytest.mark.parametrize("command", [["topics"], ["topics", "--json"], ["topics", "describe", "t\x1b[2J\u202e"]])
def test_a_command_prints_the_names_that_a_broker_tells_escaped(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeCluster() as cluster:
        cluster.topic("t\x1b[2J\u202e")
        assert main([*command, "--bootstrap", cluster.bootstrap]) == 0 or "describe" in command
    told = capsys.readouterr()
    assert (told.out + told.err).replace("\n", "").isprintable()
    assert "[2J" in told.out + told.err


def test_a_command_prints_a_groups_state_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    from .admin_responses import SERVED, Looked

    looked = Looked()
    with FakeCluster() as cluster:
        cluster.serve(SERVED, looked.responses())
        kind = messages.DescribeGroupsResponse
        answer = kind(groups=[kind.DescribedGroup(group_id="g", group_state="Empty\x1b[2J", protocol_type="consumer")])
        cluster.script("DescribeGroups", lambda message: answer)
        main(["groups", "describe", "g", "--bootstrap", cluster.bootstrap])
    told = capsys.readouterr()
    assert (told.out + told.err).replace("\n", "").isprintable()
    assert r"\x1b[2J" in told.out + told.err
