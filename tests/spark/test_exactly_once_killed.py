"""A streaming query, exactly once, whose driver is killed dead in the middle of carrying a decision out."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tagwire.broker import hang_up
from tagwire.records import Record

from .killing import kill, start
from .test_sink import read

ROWS = 60

JOB = """
import os, sys
from pathlib import Path
from tagwire.spark.session import session

bootstrap, source, target, out = sys.argv[1:]
with session(Path(out, "spark.log")) as spark:
    query = (
        spark.readStream.format("tagwire").option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", source).option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", "20").load()
        .select("key", "value").repartition(3)
        .writeStream.format("tagwire").option("kafka.bootstrap.servers", bootstrap).option("topic", target)
        .option("exactlyOnce", "true").option("checkpointLocation", str(Path(out, "checkpoint")))
        .trigger(availableNow=True).start()
    )
    query.awaitTermination()
"""


@pytest.mark.spark
@pytest.mark.timeout(300)
@pytest.mark.long
def test_a_query_killed_between_the_ends_of_a_decision_writes_every_row_once(broker, topic, produce, tmp_path):
    target = f"{topic}-target"
    values = [b"v%d" % at for at in range(ROWS)]
    produce(topic, {0: [Record(b"k%d" % at, value) for at, value in enumerate(values)]})
    command = [sys.executable, "-c", JOB, broker.bootstrap, topic, target, str(tmp_path)]
    ends = []

    async def dies_at_the_second(call):
        """Of the three transactions that the first decision lists, one is ended."""
        if ".task." in call.request.transactional_id:
            ends.append(call.request.transactional_id)
            if len(ends) > 1:
                kill(job)
                await hang_up()(call)

    with broker.intercept("EndTxn", dies_at_the_second):
        job = start(command)
        job.communicate()
        assert job.returncode == -signal.SIGKILL
    assert len(ends) == 2
    assert len(read(broker, target, 1)[0]) < 20
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr[-2000:]
    assert sorted(record.value for record in read(broker, target, 1)[0]) == sorted(values)
