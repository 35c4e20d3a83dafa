"""The topic that a replay goes to: what it lacks is found before anything is written, and foretold by a dry run."""

from __future__ import annotations

import pytest

from tagwire.cli import main
from tagwire.client import EARLIEST, LATEST, Admin, Client, NewTopic

from .log_files import LogDirectory

pytestmark = pytest.mark.spark


@pytest.fixture
def files(tmp_path):
    """Partitions 0 and 2 of a topic, 5 records each."""
    for partition in (0, 2):
        LogDirectory(tmp_path, f"flights-{partition}").numbered(5)
    return str(tmp_path)


@pytest.fixture
def command(spark, broker, files, capsys):
    """Runs `tagwire replay`; its exit code, output and errors."""

    def run(topic, *more):
        capsys.readouterr()
        code = main(["replay", topic, "--files", files, "--bootstrap", broker.bootstrap, *more])
        return code, *capsys.readouterr()

    return run


def _ends(broker, topic):
    """How many records each partition holds; None where there is no such topic."""
    with Client(broker.bootstrap) as client:
        found = client.metadata([topic]).topics[topic]
        if found.error:
            return None
        places = [(topic, index) for index in sorted(found.partitions)]
        first, last = (client.list_offsets(dict.fromkeys(places, at)) for at in (EARLIEST, LATEST))
        return [last[at] - first[at] for at in places]


def test_a_topic_that_is_not_there_is_created_with_the_partitions_of_the_rows_as_the_dry_run_says(
    command, broker, topic
):
    again = f"{topic}-again"
    assert command(again, "--dry-run") == (
        0,
        f"10 records would go to {again}, which would be created with 3 partitions\n",
        "",
    )
    assert _ends(broker, again) is None
    assert command(again) == (0, f"created {again} with 3 partitions\n10 records went to {again}\n", "")
    assert _ends(broker, again) == [5, 0, 5]
    assert command(again, "--dry-run") == (0, f"10 records would go to {again}\n", "")


@pytest.mark.parametrize("dry", [["--dry-run"], []])
def test_a_topic_that_lacks_a_partition_is_refused_before_anything_is_written(command, broker, topic, dry):
    code, out, err = command(topic, *dry)
    assert (code, out) == (2, "")
    said = "has 2 partitions, and rows come from partition 2: give it 3, or let the keys say where rows go"
    assert err == f"tagwire: topic '{topic}': {said}\n"
    assert _ends(broker, topic) == [0, 0]


def test_keys_say_where_rows_go_in_a_topic_of_fewer_partitions(command, broker, topic):
    assert command(topic, "--by-key") == (0, f"10 records went to {topic}\n", "")
    assert sum(_ends(broker, topic)) == 10


def test_a_topic_is_created_with_the_partitions_that_are_asked_for(command, broker, topic):
    again = f"{topic}-again"
    code, _, err = command(again, "--partitions", "2", "--dry-run")
    assert (code, err) == (
        2,
        f"tagwire: topic '{again}': would get 2 partitions, and rows come from partition 2: give it 3\n",
    )
    assert command(again, "--partitions", "2", "--by-key")[0] == 0
    assert len(_ends(broker, again)) == 2
    code, _, err = command(again, "--partitions", "4", "--by-key")
    assert (code, err) == (2, f"tagwire: topic '{again}': has 2 partitions already, not 4\n")


def test_a_topic_that_appears_meanwhile_is_used_if_it_has_the_partitions(spark, broker, topic, files):
    from tagwire.errors import ConfigError
    from tagwire.spark.jobs.target import create, target_of

    rows = spark.read.format("tagwire-segments").load(files)
    properties = {"bootstrap.servers": broker.bootstrap}
    fewer, enough = f"{topic}-fewer", f"{topic}-enough"
    targets = [target_of(rows, properties, name) for name in (fewer, enough)]
    with Admin(broker.bootstrap) as admin:
        admin.create_topics([NewTopic(fewer, num_partitions=1), NewTopic(enough, num_partitions=4)])
    create(targets[1], properties)
    with pytest.raises(ConfigError, match="was created meanwhile, with 1 partition"):
        create(targets[0], properties)
