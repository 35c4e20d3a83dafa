"""The options of a write: text in, checked values out. Names are those of Spark's Kafka connector, and ours."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tagwire.errors import ConfigError
from tagwire.spark.option_values import flag, known_options, refuse_path
from tagwire.spark.values.options import REGISTRY, WRITER_OPTIONS

if TYPE_CHECKING:
    from tagwire.spark.values.encoding import EncodedColumn

_PREFIX: Final = "kafka."
_NAMES: Final = (
    "kafka.bootstrap.servers",
    "topic",
    "includeHeaders",
    "exactlyOnce",
    "exactlyOnceId",
    "exactlyOnceSettled",
    "checkpointLocation",
    "queryName",
    *WRITER_OPTIONS,
)
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,200}")
_SETTLED: Final = re.compile(r"[^/\s]+/[0-9]{1,19}")
_TIMEOUT: Final = "transaction.timeout.ms"
_OURS_TO_SET: Final = {
    "key.serializer": "keys are bytes or text",
    "value.serializer": "values are bytes or text",
    "interceptor.classes": "interceptors are Java classes",
    "transactional.id": "option exactlyOnce makes transactions, under ids of its own",
}


@dataclass(frozen=True)
class SinkOptions:
    """The options of one write, checked.

    Attributes:
        client: the properties of `Client.from_properties`; they set up the producer too.
        topic: where every row goes; None as the column `topic` says.
        exactly_once: whether a streaming write is exactly once.
        given_exactly_once_id: option exactlyOnceId.
        settled_batch: option exactlyOnceSettled, the micro-batch whose lost rows were written by other means.
        transaction_timeout_ms: option kafka.transaction.timeout.ms; None is the broker's maximum.
        checkpoint: option checkpointLocation, where Spark hands it over.
        encoded: keys and values that are written from typed columns.
    """

    client: dict[str, str] = field(repr=False)
    topic: str | None = None
    exactly_once: bool = False
    given_exactly_once_id: str | None = None
    settled_batch: str | None = None
    transaction_timeout_ms: int | None = None
    checkpoint: str | None = None
    encoded: tuple[EncodedColumn, ...] = ()

    def exactly_once_id(self) -> str:
        """The name of an exactly-once query, the same whenever the query is started again: option exactlyOnceId, else
        what the query's checkpoint says.

        Raises:
            ConfigError: neither is there.
        """
        if self.given_exactly_once_id is not None:
            return self.given_exactly_once_id
        if self.checkpoint is not None:
            found = _checkpoint_id(self.checkpoint)
            if found is not None:
                return found
        raise ConfigError(
            "option exactlyOnceId: missing, and no query id can be read from the option checkpointLocation; "
            "give the query a name that stays the same when it is started again"
        )


def parse(options: Mapping[str, str]) -> SinkOptions:
    """The options of a write, checked. `includeHeaders` is the reader's and changes nothing: a column `headers` is
    written.

    Raises:
        ConfigError: an option is unknown, missing or has a wrong value; the text names it.
    """
    # Not before they are needed: PySpark looks at every data source.
    from tagwire.client.config import check_name
    from tagwire.client.config import parse as check_values
    from tagwire.spark.values.encoding import encoded_columns

    refuse_path(options, "option topic or a column topic says where rows go")
    given, prefixed = known_options(options, _NAMES, (_PREFIX,), (REGISTRY,))
    client = prefixed[_PREFIX]
    for name in client:
        if name in _OURS_TO_SET:
            raise ConfigError(f"option kafka.{name}: cannot be set, {_OURS_TO_SET[name]}")
        check_name(name, "option kafka.")
    servers = given.get("kafka.bootstrap.servers", "")
    if not servers.strip():
        raise ConfigError("option kafka.bootstrap.servers: missing; give the brokers as HOST:PORT,HOST:PORT")
    check_values({"bootstrap.servers": servers, **client})
    topic = given["topic"].strip() if "topic" in given else None
    if topic == "":
        raise ConfigError(f"option topic={given['topic']!r}: needs the name of a topic")
    flag("includeHeaders", given, default=False)
    named = given.get("exactlyOnceId")
    if named is not None and not _ID.fullmatch(named):
        raise ConfigError(f"option exactlyOnceId={named!r}: needs letters, digits, - and _, at most 200 of them")
    exactly_once = flag("exactlyOnce", given, default=named is not None)
    settled = given.get("exactlyOnceSettled")
    if settled is not None and not (exactly_once and _SETTLED.fullmatch(settled)):
        wrong = (
            "needs QUERY/BATCH as the error about lost rows names them" if exactly_once else "needs exactlyOnce=true"
        )
        raise ConfigError(f"option exactlyOnceSettled={settled!r}: {wrong}")
    if exactly_once and client.get("acks", "all").strip().lower() not in ("all", "-1"):
        raise ConfigError(f"option kafka.acks={client['acks']!r}: exactlyOnce needs all")
    return SinkOptions(
        client={"bootstrap.servers": servers, **client},
        topic=topic,
        exactly_once=exactly_once,
        given_exactly_once_id=named,
        settled_batch=settled,
        transaction_timeout_ms=int(client[_TIMEOUT]) if _TIMEOUT in client else None,
        checkpoint=given.get("checkpointLocation"),
        encoded=encoded_columns(given),
    )


def _checkpoint_id(checkpoint: str) -> str | None:
    """The id that Spark keeps of a query in its checkpoint, where that can be read from here."""
    path = Path(checkpoint.removeprefix("file://").removeprefix("file:"), "metadata")
    try:
        found = json.loads(path.read_text("utf-8")).get("id")
    except (OSError, ValueError, AttributeError):
        return None
    return found if isinstance(found, str) and _ID.fullmatch(found) else None
