"""docs/troubleshooting.md is found by error text: each heading is what is really printed, and each is produced here."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme

from tagwire.broker import Broker, Listener, Tls
from tagwire.client import Admin, Client, NewTopic, Producer, Reader
from tagwire.errors import Error

PAGE = (Path(__file__).parents[2] / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
HEADINGS = re.findall(r"^### `(.+)`$", PAGE, re.MULTILINE)
PASSWORD = "pen,c=il-hunter2"

Have = Callable[[str], Any]
Produced = Callable[[Have], str]
PRODUCED: dict[str, Produced] = {}

# Of causes in a table under a heading one is produced here; tests/doctor plants those of another Java or Python.


def printed(heading: str) -> Callable[[Produced], Produced]:
    """The function that follows produces the error of this heading; it gets fixtures by their names."""

    def keep(produced: Produced) -> Produced:
        PRODUCED[heading] = produced
        return produced

    return keep


def holds(text: str, heading: str) -> bool:
    """Whether the parts of a heading, between its `...`, stand in the text in this order."""
    return re.search(".*".join(map(re.escape, heading.split("..."))), text, re.DOTALL) is not None


NOT_FOUND = "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: tagwire."
NO_PYARROW = "ModuleNotFoundError: No module named 'pyarrow'"
ANOTHER_PYTHON = "[PYTHON_VERSION_MISMATCH] Python in worker has different version: ... than that in driver: ..."
NO_SAVE_MODE = (
    '[UNSUPPORTED_DATA_SOURCE_SAVE_MODE] The data source "tagwire" cannot be written in the "ErrorIfExists" mode.'
)
OUTSIDE = "is outside ..."
MISSED = "records may have been missed: ..."
LONG = NOT_FOUND, NO_PYARROW, ANOTHER_PYTHON, NO_SAVE_MODE, OUTSIDE, MISSED


@pytest.mark.spark
@pytest.mark.parametrize(
    "heading",
    [pytest.param(name, marks=pytest.mark.long if name in LONG else ()) for name in HEADINGS],
)
def test_a_heading_is_what_is_printed(heading, request):
    assert heading in PRODUCED, "nobody produces this error"
    text = PRODUCED[heading](request.getfixturevalue)
    assert holds(text, heading), text
    assert PASSWORD not in text


def test_every_error_that_is_produced_has_its_heading():
    assert set(PRODUCED) == set(HEADINGS)


# Spark ---------------------------------------------------------------------------------------------------------------


def started(folder: Path, code: str, **environment: str) -> str:
    """What a program of a user's prints that begins with a session of its own."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK"))}
    begin = (
        "from pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false').getOrCreate()\n"
    )
    command = [sys.executable, "-c", begin + code]
    ran = subprocess.run(
        command, cwd=folder, env={**inherited, **environment}, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1
    return ran.stderr


def bare_python(folder: Path) -> str:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "bare")], check=True)
    return str(folder / "bare" / "bin" / "python")


@printed(NOT_FOUND)
def not_found(have: Have) -> str:
    folder = have("tmp_path")
    return started(folder, "spark.read.format('tagwire').load()", PYSPARK_PYTHON=bare_python(folder))


@printed("[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number.")
def no_java(have: Have) -> str:
    folder = have("tmp_path")
    said = started(folder, "", JAVA_HOME=str(folder))
    assert f"{folder}/bin/java: No such file or directory" in said  # as the page says that it does
    return said


@printed(NO_PYARROW)
def no_pyarrow(have: Have) -> str:
    python, sources = bare_python(have("tmp_path")), str(Path(__file__).parents[2] / "src")
    options = {"kafka.bootstrap.servers": have("broker").bootstrap, "subscribe": have("topic")}
    with Producer(have("broker").bootstrap) as producer:
        producer.send(have("topic"), b"v")
    code = f"spark.read.format('tagwire').options(**{options}).load().collect()"
    return started(have("tmp_path"), code, PYSPARK_PYTHON=python, PYTHONPATH=sources)


@printed(ANOTHER_PYTHON)
def another_python(have: Have) -> str:
    from pyspark.sql.functions import udf

    spark = have("spark")
    context, monkeypatch = spark.sparkContext, have("monkeypatch")
    monkeypatch.setattr(context, "pythonVer", "3.9")
    return failed(lambda: spark.range(1).select(udf(lambda number: number)("id")).collect())


@printed(NO_SAVE_MODE)
def no_save_mode(have: Have) -> str:
    table = have("spark").sql("SELECT CAST('v' AS BINARY) AS value").write.format("tagwire")
    options = {"kafka.bootstrap.servers": have("broker").bootstrap, "topic": have("topic")}
    return failed(lambda: table.options(**options).save())


@printed("option ...: unknown; nearest are ...")
def misspelt_option(have: Have) -> str:
    return failed(lambda: read(have, startingOffset="earliest"))


@printed(OUTSIDE)
def outside(have: Have) -> str:
    topic = have("topic")
    return failed(lambda: read(have, startingOffsets=f'{{"{topic}":{{"0":500,"1":0}}}}').count())


@printed(MISSED)
def missed(have: Have) -> str:
    """All three of them."""
    spark, bootstrap, folder = have("spark"), have("broker").bootstrap, have("tmp_path")

    def fill(topic: str, count: int) -> None:
        with Producer(bootstrap) as producer:
            for _ in range(count):
                producer.send(topic, b"v", partition=0)

    def stream(topic: str) -> None:
        source = spark.readStream.format("tagwire").option("kafka.bootstrap.servers", bootstrap)
        rows = source.option("subscribe", topic).option("startingOffsets", "earliest").load()
        query = rows.writeStream.trigger(availableNow=True).option("checkpointLocation", str(folder / "checkpoint"))
        query.format("noop").start().awaitTermination(60)

    with Admin(bootstrap) as admin:
        names = [f"{folder.name[:50].replace('[', '')}-{name}" for name in ("one", "two")]
        admin.create_topics([NewTopic(name) for name in names])
        fill(names[0], 10)
        stream(names[0])
        said = [failed(lambda: stream(names[1]))]
        fill(names[0], 10)
        admin.delete_records({(names[0], 0): 15})
        said.append(failed(lambda: stream(names[0])))
        admin.delete_topics([names[0]])
        fill(names[0], 1)
        said.append(failed(lambda: stream(names[0])))
    for text, sign in zip(said, ("is gone, its offset was", "begins at 15, offsets from", "ends at 1, offsets up to")):
        assert sign in text
        assert sign in PAGE
    return "\n".join(said)


def read(have: Have, **options: str) -> Any:
    source = have("spark").read.format("tagwire").option("kafka.bootstrap.servers", have("broker").bootstrap)
    return source.option("subscribe", have("topic")).options(**options).load()


# The way to the brokers ----------------------------------------------------------------------------------------------


def failed(work: Callable[[], object]) -> str:
    with pytest.raises(Exception) as caught:
        work()
    return f"{type(caught.value).__module__}.{type(caught.value).__name__}: {caught.value}"


def contact(bootstrap: str, **options: Any) -> str:
    """What a client is told that cannot begin."""
    with Client(bootstrap, **{"timeout": 5.0, **options}) as client:
        return failed(client.metadata)


@contextmanager
def encrypted(certificate: Path, **options: Any) -> Iterator[str]:
    listener = Listener(tls=Tls(str(certificate), str(certificate), **options))
    with Broker(listeners=[listener], fsync="never") as broker:
        yield broker.bootstrap


def trusting(have: Have) -> dict[str, Any]:
    return {"security_protocol": "SSL", "ssl_cafile": str(have("certificates").authority)}


def login(**options: str) -> dict[str, str]:
    return {"sasl_mechanism": "PLAIN", "sasl_plain_username": "alice", "sasl_plain_password": PASSWORD, **options}


@printed("(Connection refused)")
def refused(have: Have) -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    return contact(f"127.0.0.1:{port}")


@printed("(Name or service not known)")
def unknown_host(have: Have) -> str:
    return contact("nosuch.invalid:9092")


@printed("(timed out)")
def dropped(have: Have) -> str:
    with (
        socket.socket() as full,
        socket.socket() as waiting,
    ):  # a queue of one, taken: the next one's packets are dropped
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting.connect(full.getsockname())
        return contact(f"127.0.0.1:{full.getsockname()[1]}", timeout=0.5)


@printed("did not answer ApiVersions within ... s")
def silent(have: Have) -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return contact(f"127.0.0.1:{listener.getsockname()[1]}", timeout=0.3)


@printed("ends a plain connection like this")
def plain_to_tls(have: Have) -> str:
    with encrypted(have("certificates").broker) as bootstrap:
        return contact(bootstrap)


@printed("it does not seem to speak TLS")
def tls_to_plain(have: Have) -> str:
    return contact(have("broker").bootstrap, **trusting(have))


@printed("its certificate is not trusted: unable to get local issuer certificate")
def unknown_authority(have: Have) -> str:
    with encrypted(have("certificates").broker) as bootstrap:
        return contact(bootstrap, security_protocol="SSL")


@printed("certificate is not valid for ...")
def another_host(have: Have) -> str:
    with encrypted(have("certificates").elsewhere) as bootstrap:
        return contact(bootstrap, **trusting(have))


@printed("its certificate is not trusted: certificate is not yet valid")
def future_certificate(have: Have) -> str:
    now, authority, folder = datetime.now(UTC).replace(tzinfo=None), trustme.CA(), have("tmp_path")
    days = timedelta(days=1)
    issued = authority.issue_cert("127.0.0.1", not_before=now + days, not_after=now + 2 * days)
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    issued.private_key_and_cert_chain_pem.write_to_path(str(folder / "broker.pem"))
    with encrypted(folder / "broker.pem") as bootstrap:
        return contact(bootstrap, security_protocol="SSL", ssl_cafile=str(folder / "ca.pem"))


@printed("ApiVersions v5 (correlation id 0) was still to be answered")
def no_certificate(have: Have) -> str:
    with encrypted(have("certificates").broker, client_ca=str(have("certificates").authority)) as bootstrap:
        said = contact(bootstrap, **trusting(have))
    assert "ends a plain connection" not in said
    return said


@printed("the broker closed the connection; Metadata ... was still to be answered")
def no_user(have: Have) -> str:
    with Broker(sasl="PLAIN", users={"alice": PASSWORD}, fsync="never") as broker:
        return contact(broker.bootstrap, timeout=1.0)


@printed("SASL_AUTHENTICATION_FAILED")
def wrong_password(have: Have) -> str:
    with Broker(sasl="PLAIN", users={"alice": "another"}, fsync="never") as broker:
        return contact(broker.bootstrap, security_protocol="SASL_PLAINTEXT", **login())


@printed("UNSUPPORTED_SASL_MECHANISM; it offers ...")
def wrong_mechanism(have: Have) -> str:
    with Broker(sasl="SCRAM-SHA-512", users={"alice": PASSWORD}, fsync="never") as broker:
        return contact(broker.bootstrap, security_protocol="SASL_PLAINTEXT", **login())


@printed("sasl_mechanism='AWS_MSK_IAM': allowed is PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI")
def no_such_mechanism(have: Have) -> str:
    return failed(lambda: Client("h:1", security_protocol="SASL_PLAINTEXT", **login(sasl_mechanism="AWS_MSK_IAM")))


@printed("only PEM files can be read")
def java_store(have: Have) -> str:
    given = {"bootstrap.servers": "h:1", "security.protocol": "SSL", "ssl.truststore.location": "trust.jks"}
    return failed(lambda: Client.from_properties(given))


@printed("no property of a Kafka client; ... is one")
def misspelt_property(have: Have) -> str:
    return failed(lambda: Client.from_properties({"bootstrap.servers": "h:1", "security.protocl": "SSL"}))


# Topics, offsets, records --------------------------------------------------------------------------------------------


@printed("UNKNOWN_TOPIC_OR_PARTITION (3)")
def no_topic(have: Have) -> str:
    return failed(lambda: list(Reader(have("broker").bootstrap, {("nosuch", 0): 0}, stop_at_end=True)))


@printed("TOPIC_AUTHORIZATION_FAILED (29)")
def not_allowed(have: Have) -> str:
    async def forbid(call: Any) -> Any:
        answer = await call.proceed()
        for topic in answer.topics:
            topic.error_code, topic.partitions = int(Error.TOPIC_AUTHORIZATION_FAILED), []
        return answer

    broker, topic = have("broker"), have("topic")
    with broker.intercept("Metadata", forbid):
        return failed(lambda: list(Reader(broker.bootstrap, {(topic, 0): 0}, stop_at_end=True)))


@printed("OFFSET_OUT_OF_RANGE (1): ...: no offset ...; the partition holds offsets ...")
def out_of_range(have: Have) -> str:
    bootstrap, topic = have("broker").bootstrap, have("topic")
    with Producer(bootstrap) as producer:
        for _ in range(10):
            producer.send(topic, b"v", partition=0)
    with Admin(bootstrap) as admin:
        admin.delete_records({(topic, 0): 5})
    return failed(lambda: list(Reader(bootstrap, {(topic, 0): 2}, stop_at_end=True)))


def refusal(have: Have, value: bytes, timestamp: int | None = None) -> str:
    def send() -> None:
        with Producer(have("broker").bootstrap) as producer:
            producer.send(have("topic"), value, timestamp=timestamp).result()

    return failed(send)


@printed("MESSAGE_TOO_LARGE (10)")
def too_large(have: Have) -> str:
    return refusal(have, os.urandom(2_000_000))


@printed("INVALID_TIMESTAMP (32)")
def future_record(have: Have) -> str:
    return refusal(have, b"v", int(time.time() * 1000) + 7_200_000)


@printed("ProducerFencedError")
def fenced(have: Have) -> str:
    first, second = (Producer(have("broker").bootstrap, transactional_id="shared") for _ in range(2))
    with first, second:
        first.init_transactions()
        second.init_transactions()

        def send() -> None:
            with first.transaction():
                first.send(have("topic"), b"v")

        return failed(send)


# Slow ----------------------------------------------------------------------------------------------------------------


@printed("not compiled: pure Python, slow")
def uncompiled(have: Have) -> str:
    command = [sys.executable, "-m", "tagwire", "--version"]
    environment = {**os.environ, "TAGWIRE_PURE": "1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
