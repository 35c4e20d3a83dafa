"""What is named and is not there: every command says so in a line that names it, and exits with 2.

A command that prints nothing, or "0 of it", and exits with 0 is taken for an answer.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tagwire.client import Admin, NewTopic, Producer, TopicPartition
from tagwire.records import Record, write

from ..capture.traffic import Talk, asks, offers, pcap

CASES = [
    # command, and what of it is named
    ("topics describe nosuch", "nosuch"),
    ("topics describe present nosuch", "nosuch"),
    ("topics alter nosuch --partitions 2", "nosuch"),
    ("topics alter nosuch --partitions 2 --dry-run", "nosuch"),
    ("topics trim nosuch --before latest", "nosuch"),
    ("topics trim present --before latest --partition 7", "7"),
    ("topics trim present --before latest --partition 7 --dry-run", "7"),
    ("topics trim present --before 99", "99"),
    ("topics trim present --before 99 --dry-run", "99"),
    ("topics delete nosuch", "nosuch"),
    ("topics create t --config no.such=1", "no.such"),
    ("topics create t --config no.such=1 --dry-run", "no.such"),
    ("produce present --file nosuch.txt", "nosuch.txt"),
    ("consume nosuch", "nosuch"),
    ("consume nosuch --json", "nosuch"),
    ("consume present --partition 7", "7"),
    ("consume present --from 99", "99"),
    ("consume present --from 7=0", "7"),
    ("consume present --offsets 99:100", "99"),
    ("consume present --group nosuch", "nosuch"),
    ("consume present --group nosuch --follow", "nosuch"),
    ("groups list --state Nosuch", "Nosuch"),
    ("groups describe nosuch", "nosuch"),
    ("groups describe readers nosuch", "nosuch"),
    ("groups delete nosuch", "nosuch"),
    ("groups offsets reset nosuch --to earliest", "nosuch"),
    ("groups offsets reset readers --to earliest --topic nosuch", "nosuch"),
    ("groups offsets reset readers --to earliest --partition 7", "7"),
    ("groups offsets reset readers --by 1 --topic nosuch", "nosuch"),
    ("groups offsets reset nosuch --by 1 --topic present", "nosuch"),
    ("groups offsets delete nosuch", "nosuch"),
    ("groups offsets delete readers --topic nosuch", "nosuch"),
    ("groups offsets delete readers --topic present --partition 7", "7"),
    ("configs describe topic/nosuch", "nosuch"),
    ("configs describe broker/99", "99"),
    ("configs alter topic/nosuch --set retention.ms=5", "nosuch"),
    ("configs alter topic/nosuch --set retention.ms=5 --dry-run", "nosuch"),
    ("configs alter topic/present --set no.such=5", "no.such"),
    ("configs alter topic/present --reset no.such", "no.such"),
    ("versions --against 9.9", "9.9"),
    ("versions --feature nosuch.toml", "nosuch.toml"),
    ("broker --data d --config nosuch.toml", "nosuch.toml"),
    ("broker --data d --register nosuch.toml", "nosuch.toml"),
    ("broker --data d --as-release 9.9", "9.9"),
    ("broker --stats --data nosuch", "nosuch"),
    ("audit nosuch.log", "nosuch.log"),
    ("audit *.nosuch", "*.nosuch"),
    ("audit empty", "empty"),
    ("audit empty.txt", "empty.txt"),
    ("audit a.pcap nosuch.log", "nosuch.log"),
    ("audit a.pcap --target 9.9", "9.9"),
    ("capture show nosuch.pcap", "nosuch.pcap"),
    ("capture show empty", "empty"),
    ("capture show a.pcap --client nosuch", "nosuch"),
    ("capture show a.pcap --client nosuch --json", "nosuch"),
    ("capture show a.pcap --api Nosuch", "Nosuch"),
    ("capture show a.pcap --api Produce", "Produce"),
    ("capture show a.pcap --api ApiVersions --api Produce", "Produce"),
    ("lag --group nosuch", "nosuch"),
    ("lag --group nosuch --summary --json", "nosuch"),
    ("lag --topic nosuch", "nosuch"),
    ("lag --group readers --group nosuch", "nosuch"),
    ("log nosuch", "nosuch"),
    ("log empty", "empty"),
    ("log empty --verify", "empty"),
    ("log 00000000000000000000.log --offset 99", "99"),
    ("log 00000000000000000000.log --records --offset 99", "99"),
    ("log data --decode offsets", "__consumer_offsets"),
    ("log 00000000000000000000.log --register nosuch.toml", "nosuch.toml"),
    ("spec list --type nosuch", "nosuch"),
    ("spec show Nosuch", "Nosuch"),
    ("spec show FetchRequest --version 99", "99"),
    ("spec check nosuch", "nosuch"),
    ("spec check empty", "empty"),
    ("spec diff nosuch.json a.json", "nosuch.json"),
    ("spec diff 3.9 9.9", "9.9"),
    ("spec diff a.json a.json --history nosuch", "nosuch"),
    ("headers check nosuch.toml", "nosuch.toml"),
    ("headers list nosuch.toml", "nosuch.toml"),
    ("headers list --scheme nosuch", "nosuch"),
    ("decode Nosuch --version 1 --hex 00", "Nosuch"),
    ("decode FetchRequest --version 99 --hex 00", "99"),
    ("decode FetchRequest --version 12 --file nosuch", "nosuch"),
    ("encode Nosuch --version 1 --file a.json", "Nosuch"),
    ("encode FetchRequest --version 12 --file nosuch.json", "nosuch.json"),
    ("doctor 127.0.0.1:1 --properties nosuch.properties", "nosuch.properties"),
    ("--properties nosuch.properties topics", "nosuch.properties"),
    ("topics --bootstrap no.such.invalid:9092", "no.such.invalid"),
]


SPEC = """{"apiKey": 3000, "type": "request", "listeners": ["broker"], "name": "ARequest", "validVersions": "0",
    "flexibleVersions": "0+", "fields": []}"""


@pytest.fixture(scope="module")
def there(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is there: a topic of three records, a group that has read one, and files, most of which hold nothing."""
    folder = tmp_path_factory.mktemp("there")
    (folder / "empty").mkdir()
    (folder / "empty.txt").touch()
    (folder / "a.json").write_text(SPEC)
    (folder / "a.pcap").write_bytes(pcap(Talk().open().client(asks()).broker(offers(Produce=(0, 11))).packets()))
    (folder / "00000000000000000000.log").write_bytes(write([Record(None, b"a")]))
    for name in ("present-0", "present-1"):
        (folder / "data" / name).mkdir(parents=True)
        (folder / "data" / name / "00000000000000000000.log").write_bytes(write([Record(None, b"a")]))
    with Admin(bootstrap) as admin:
        admin.create_topics([NewTopic("present", num_partitions=1)])
        admin.alter_group_offsets("readers", {TopicPartition("present", 0): 1})
    with Producer(bootstrap) as producer:
        for at in range(3):
            producer.send("present", b"%d" % at)
    return folder


@pytest.mark.parametrize(("command", "named"), CASES, ids=[command for command, _ in CASES])
def test_what_is_named_and_not_there_is_told_in_one_line(run, there, monkeypatch, command, named):
    monkeypatch.chdir(there)
    ran = run(*command.split())
    assert (ran.code, ran.err.count("\n")) == (2, 1), ran
    assert ran.err.startswith("tagwire: ")
    assert named in ran.err
