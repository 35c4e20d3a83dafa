"""Several topics at once: a table each, in one Spark. One that fails is named, and the others are finished."""

from __future__ import annotations

import re
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tagwire.errors import ConfigError, TagwireError
from tagwire.spark.failure import reason
from tagwire.spark.jobs.land import land, may_pass
from tagwire.spark.jobs.landed import Follow, LandListener, LandReport, check_metrics
from tagwire.spark.session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Outcome = LandReport | TagwireError
_NAME = re.compile(r"(?!\.\.?$)[a-zA-Z0-9._-]+", re.ASCII)
"""What a topic of Kafka may be called. A directory of that name is below the one that it is made in."""
_LOOK_SECONDS = 1.0


def topics_like(bootstrap: str, pattern: str, properties: Mapping[str, str] | None = None) -> list[str]:
    """The topics whose whole name matches a regular expression, but those that are the cluster's own. A name that no
    topic of Kafka has is not among them: each becomes a directory, and whoever is asked may tell any.

    Raises:
        ConfigError: no topic matches, or it is no regular expression. ConnectError, KafkaError: as the brokers respond.
    """
    from tagwire.client import Client

    matches = _compiled(pattern).fullmatch
    with Client.from_properties({**(properties or {}), "bootstrap.servers": bootstrap}) as client:
        found = client.metadata().topics
    names = sorted(
        name for name, topic in found.items() if _NAME.fullmatch(name) and not topic.is_internal and matches(name)
    )
    if not names:
        raise ConfigError(f"topics_like={pattern!r}: matches none of {len(found)} topics")
    return names


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"topics_like={pattern!r}: {error}") from None


def land_topics(
    bootstrap: str,
    topics: Sequence[str],
    to: str,
    *,
    listener: Callable[[str], LandListener] = lambda topic: LandListener(),
    on_topic: Callable[[str, Outcome], None] = lambda topic, outcome: None,
    like: str | None = None,
    follow: Follow | None = None,
    spark: SparkSession | None = None,
    metrics: str | Path | None = None,
    checkpoint: str | Path | None = None,
    **given: Any,
) -> dict[str, Outcome]:
    """Land each topic in a table of its own, `to/TOPIC`; its report, or why it was not landed.

    Args:
        listener: who is told of a topic's run.
        on_topic: told of each topic when its run has ended.
        like: with `follow`, a regular expression: topics whose whole name matches are landed, too, those that come
            later as well, and those whose run could not begin since brokers, or a store of tables, were away.
        follow: goes on landing all of them at once, until told to stop; else one is landed after the other.
        metrics: a directory that is there, which gets a file `TOPIC.prom` for each.
        checkpoint: a directory, with one for each in it.
        given: the other arguments of `land`.

    Raises:
        ConfigError: a topic is named twice, `like` is no regular expression, `follow` waits for no time, or there is no
            Java or PySpark.
        StorageError: `metrics` is no directory.
    """
    twice = sorted({topic for topic in topics if topics.count(topic) > 1})
    if twice:
        raise ConfigError(f"topic {twice[0]!r}: is named twice")
    if like is not None:
        _compiled(like)
    if follow is not None:
        follow.check()
    if metrics is not None:
        check_metrics(Path(metrics))
    outcomes: dict[str, Outcome] = {}

    def run(topic: str, own: SparkSession) -> None:
        try:
            outcomes[topic] = land(
                bootstrap,
                topic,
                f"{str(to).rstrip('/')}/{topic}",
                listener=listener(topic),
                follow=follow,
                spark=own,
                metrics=None if metrics is None else Path(metrics) / f"{topic}.prom",
                checkpoint=None if checkpoint is None else Path(checkpoint) / topic,
                **given,
            )
        except TagwireError as error:
            outcomes[topic] = error
        except Exception as error:
            # What nobody thought of ends its own topic, too.
            outcomes[topic] = reason(error)
        on_topic(topic, outcomes[topic])

    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tagwire-")))
        own = stack.enter_context(session(folder / "spark.log", spark))
        if follow is None:
            for topic in topics:
                run(topic, own)
        else:
            begun: dict[str, threading.Thread] = {}

            def begin(names: Sequence[str]) -> None:
                for topic in names:
                    # What was away as a topic's run began ends that run alone.
                    again = topic in outcomes and not begun[topic].is_alive() and may_pass(outcomes[topic])
                    if topic not in begun or again:
                        begun[topic] = threading.Thread(target=run, args=(topic, own), name=f"land {topic}")
                        begun[topic].start()

            begin(topics)
            while like is not None and not follow.stop.is_set():
                # None yet, or brokers that are away: they are asked again.
                with suppress(TagwireError):
                    begin(topics_like(bootstrap, like, given.get("properties")))
                follow.stop.wait(max(follow.seconds, _LOOK_SECONDS))
            for thread in begun.values():
                thread.join()
            topics = list(begun)
    return {topic: outcomes[topic] for topic in topics}
