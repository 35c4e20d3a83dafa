"""A stream that logs in with tokens lives through sessions that end, and what it logs in with is written nowhere."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import pytest

from tagwire.broker import Broker, ClaimsCheck, UnsecuredTokens
from tagwire.client import Admin, NewTopic, Producer, Reader

SECRET = "hunter2-Pen.cil"
SESSION_S = 3.0
RENEWALS = 10
SECONDS = 100


class Endpoint:
    """A token endpoint: each token is another one.

    Attributes:
        issued: the tokens.
    """

    def __init__(self) -> None:
        self.issued: list[str] = []
        self.url = ""

    def issue(self) -> str:
        claims = {"sub": "loader", "exp": time.time() + 3600, "jti": f"number-{len(self.issued)}"}
        parts = (json.dumps(part).encode() for part in ({"alg": "none"}, claims))
        self.issued.append(b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in parts).decode() + ".")
        return self.issued[-1]

    @classmethod
    @contextmanager
    def running(cls) -> Iterator[Endpoint]:
        endpoint = cls()
        basic = "Basic " + base64.b64encode(f"loader:{SECRET}".encode()).decode()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                is_known = self.headers["Authorization"] == basic
                body = json.dumps({"access_token": endpoint.issue(), "expires_in": 3600} if is_known else {}).encode()
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(200 if is_known else 401)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        endpoint.url = f"http://127.0.0.1:{server.server_port}/token"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield endpoint
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint.running() as running:
        yield running


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Broker]:
    validator = UnsecuredTokens(ClaimsCheck())
    with Broker(
        tmp_path / "broker", sasl="OAUTHBEARER", oauthbearer_validator=validator, max_reauth_s=SESSION_S, fsync="never"
    ) as broker:
        yield broker


def options(broker: Broker, endpoint: Endpoint) -> dict[str, str]:
    """As a query of Spark's own connector has them."""
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    return {
        "kafka.bootstrap.servers": broker.bootstrap,
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "OAUTHBEARER",
        "kafka.sasl.oauthbearer.token.endpoint.url": endpoint.url,
        "kafka.sasl.jaas.config": f'{module} required clientId="loader" clientSecret="{SECRET}";',
    }


@contextmanager
def written_down(spark, folder: Path) -> Iterator[Path]:
    """Spark's event log of what is done inside, in a folder, and beside it its log, which tells more than usual."""
    folder.mkdir()
    jvm, context = spark.sparkContext._jvm, spark.sparkContext._jsc.sc()
    listener = jvm.org.apache.spark.scheduler.EventLoggingListener(
        "secrets",
        jvm.scala.Option.empty(),
        jvm.java.net.URI(folder.as_uri()),
        context.conf().clone().set("spark.eventLog.compress", "false"),
    )
    logging = jvm.org.apache.logging.log4j.LogManager.getContext(False)
    core = jvm.org.apache.logging.log4j.core
    writer = jvm.java.io.FileWriter(str(folder / "log"))
    layout = core.layout.PatternLayout.createDefaultLayout()
    appender = core.appender.WriterAppender.createAppender(layout, None, writer, "secrets", False, False)
    appender.start()
    logging.getConfiguration().getRootLogger().addAppender(appender, None, None)
    logging.updateLoggers()
    listener.start()
    context.addSparkListener(listener)
    spark.sparkContext.setLogLevel("INFO")
    try:
        yield folder
    finally:
        spark.sparkContext.setLogLevel("ERROR")
        logging.getConfiguration().getRootLogger().removeAppender("secrets")
        logging.updateLoggers()
        appender.stop()
        context.removeSparkListener(listener)
        listener.stop()


def renewals(broker: Broker) -> int:
    """How often a connection was authenticated again, all of them together."""
    logins = Counter(entry.address for entry in broker.requests.select("SaslAuthenticate"))
    return sum(count - 1 for count in logins.values())


def forms(secret: str) -> list[bytes]:
    """How it might stand somewhere."""
    data = secret.encode()
    return [data, quote(secret).encode(), data.hex().encode(), base64.b64encode(data).rstrip(b"=")]


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.timeout(300)  # it waits for sessions to end, ten of them
def test_a_stream_lives_through_sessions_that_end_and_leaves_no_secret_anywhere(
    spark, guarded: Broker, endpoint: Endpoint, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    login = options(guarded, endpoint)
    keywords = {name.removeprefix("kafka."): value for name, value in login.items()}
    with Admin(keywords) as admin:
        admin.create_topics([NewTopic("from", num_partitions=2), NewTopic("to", num_partitions=1)])
    explained: list[str] = []
    sent = 0
    with written_down(spark, tmp_path / "events") as events, Producer(keywords) as producer:
        stream = (
            spark.readStream.format("tagwire").options(**login, subscribe="from", startingOffsets="earliest").load()
        )
        query = (
            stream.select("key", "value")
            .writeStream.format("tagwire")
            .options(**login, topic="to", checkpointLocation=str(tmp_path / "checkpoint"))
            .trigger(processingTime="300 milliseconds")
            .start()
        )
        try:
            until = time.monotonic() + SECONDS
            while renewals(guarded) < RENEWALS and query.isActive and time.monotonic() < until:
                producer.send("from", b"%d" % sent).result(20)
                sent += 1
                time.sleep(0.05)  # the sessions' ends are real
            query.processAllAvailable()
            explained.append(query._jsq.explainInternal(True))
        finally:
            query.stop()
        assert query.exception() is None
        batch = spark.read.format("tagwire").options(**login, subscribe="from").load()
        batch.explain(extended=True)
        assert batch.count() == sent
    assert renewals(guarded) >= RENEWALS
    with Reader(keywords, "to", stop_at_end=True) as reader:
        assert sorted(int(record.value) for record in reader.records()) == list(range(sent))
    assert len(endpoint.issued) > 2  # this program, and each worker of Spark's that connected
    # Nowhere --------------------------------------------------------------------------------------------------------
    out = capfd.readouterr()
    told = {"plan": "\n".join(explained).encode(), "printed": (out.out + out.err).encode()}
    told |= {
        str(path): path.read_bytes()
        for at in (tmp_path / "checkpoint", events)
        for path in at.rglob("*")
        if path.is_file()
    }
    assert b"to store the query checkpoint" in told[str(events / "log")]
    assert b"== Physical Plan ==" in told["plan"]
    assert b"== Physical Plan ==" in told["printed"]
    assert any(b"SparkListenerSQLExecutionStart" in text for text in told.values())
    assert any("offsets" in name for name in told)
    for secret in (SECRET, *endpoint.issued):
        for form in forms(secret):
            assert [name for name, text in told.items() if form in text] == []
