"""`tagwire versions`: what brokers serve, what they share, what tagwire speaks."""

from __future__ import annotations

import json
import re

import pytest

from tagwire import messages
from tagwire.client.versions import OURS
from tagwire.rpc import ranges_of

from ..client.fake_broker import FakeCluster

# A broker of everything that tagwire uses.
SERVED = {**OURS, 2: (1, 7), 3: (0, 12)}
PRODUCE = OURS[0]
MODERN = SERVED.items()


@pytest.fixture
def modern():
    with FakeCluster(served=SERVED) as cluster:
        yield cluster


@pytest.fixture
def old():
    with FakeCluster() as cluster:
        cluster.served.clear()
        cluster.served.update({**SERVED, 0: (3, 9), 1: (4, 11), 3: (0, 2), 337: (0, 1)})
        yield cluster


def test_one_broker_shows_its_ranges_and_what_tagwire_speaks(run, modern):
    ran = run("versions", modern.bootstrap)
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0].split() == ["API", "127.0.0.1", "tagwire"]
    assert lines[1].split() == ["Produce", f"{PRODUCE[0]}-{PRODUCE[1]}", str(PRODUCE[1])]
    assert lines[-1] == "1 broker: no release of Kafka by its ranges; everything tagwire needs is there."


def test_several_brokers_show_what_they_share(run, modern, old):
    ran = run("versions", f"{modern.bootstrap},{old.bootstrap}")
    assert ran.code == 0
    titles, *lines = [line.split() for line in ran.out.splitlines()]
    rows = {name: ranges for name, *ranges in lines}
    assert titles == ["API", modern.bootstrap, old.bootstrap, "both", "tagwire"]
    assert rows["Produce"] == [f"{PRODUCE[0]}-{PRODUCE[1]}", "3-9", "3-9", "9"]
    assert rows["Metadata"] == ["0-12", "0-2", "0-2", "none"]
    assert rows["API"] == ["337", "-", "0-1", "-"]
    assert ran.out.splitlines()[-1].endswith("; tagwire has no version in common for Metadata.")


def test_what_others_answer_for_is_not_missed(run, modern):
    del modern.served[69]
    assert run("versions", modern.bootstrap).out.splitlines()[-1].endswith("; everything tagwire needs is there.")


def test_versions_that_are_deprecated_or_not_to_be_used_are_marked(run, modern):
    modern.served.update({24: (0, 5), 29: (0, 1)})
    ran = run("versions", modern.bootstrap)
    lines = {line.split()[0]: line for line in ran.out.splitlines()}
    assert lines["API"].split() == ["API", "127.0.0.1", "tagwire", "marked"]
    assert lines["DescribeAcls"].split() == ["DescribeAcls", "0-1", "1", "deprecated", "0"]
    assert lines["Produce"].split() == ["Produce", f"{PRODUCE[0]}-{PRODUCE[1]}", str(PRODUCE[1])]
    assert re.search(r"^AddPartitionsToTxn +0-5 +3 +do not use 4-5$", ran.out, re.MULTILINE)
    assert "\nAddPartitionsToTxn 4-5 must not be used: for brokers alone" in ran.out


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "there are no spec files"),
        ({"Foo": {"type": "data", "name": "Foo"}}, "there is no request among these specs"),
        ({"FooRequest": {"type": "request", "apiKey": 9000, "name": "FooRequest"}}, "FooRequest has no response"),
    ],
)
def test_specs_that_are_no_apis_are_one_line_and_exit_code_2(run, tmp_path, files, said):
    for name, document in files.items():
        whole = {"validVersions": "0", "flexibleVersions": "none", "fields": []} | document
        (tmp_path / f"{name}.json").write_text(json.dumps(whole))
    ran = run("versions", "127.0.0.1:1", "--specs", tmp_path)
    assert ran.code == 2
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1


def test_json_tells_the_same_for_programs(run, modern, old):
    ran = run("versions", f"{modern.bootstrap},{old.bootstrap}", "--json")
    assert ran.code == 0
    rows = {row["api"]: row for row in map(json.loads, ran.out.splitlines())}
    assert rows["Produce"] == {
        "api": "Produce",
        "key": 0,
        "brokers": {modern.bootstrap: list(PRODUCE), old.bootstrap: [3, 9]},
        "all": [3, 9],
        "tagwire": 9,
        "tagwire_range": list(PRODUCE),
        "deprecated": None,
        "do_not_use": {},
    }
    assert (rows["Metadata"]["all"], rows["Metadata"]["tagwire"]) == ([0, 2], None)
    unknown = rows["API 337"]
    assert (unknown["brokers"][modern.bootstrap], unknown["all"], unknown["tagwire_range"]) == (None, None, None)


def test_a_broker_that_cannot_be_reached_is_named(run, modern):
    with FakeCluster() as gone:
        address = gone.bootstrap
    ran = run("versions", f"{modern.bootstrap},{address}")
    assert (ran.code, ran.out) == (2, "")
    assert address in ran.err
    assert ran.err.count("\n") == 1


@pytest.fixture
def release():
    with FakeCluster(served=ranges_of("3.9")) as cluster:
        yield cluster


def test_a_release_is_known_by_its_ranges(run, release):
    assert (
        "1 broker: Kafka 3.9 by its ranges; everything tagwire needs is there."
        in run("versions", release.bootstrap).out
    )


def test_another_release_shows_what_would_go_and_what_would_come(run, release):
    ran = run("versions", release.bootstrap, "--against", "4.3")
    assert ran.code == 0
    rows = {line.split()[0]: line.split()[1:] for line in ran.out.splitlines()}
    assert rows["Produce"] == ["0-11", "11", "3-13", "drops", "0-2,", "adds", "12-13", "deprecated", "0-2"]
    assert rows["StreamsGroupHeartbeat"] == ["-", "0", "comes"]
    assert ran.out.splitlines()[-1].endswith("lose versions with 4.3; nothing tagwire uses is lost.")
    gone = json.loads(run("versions", release.bootstrap, "--against", "0.9.0", "--json").out.splitlines()[18])
    assert (gone["api"], gone["against"], gone["note"]) == ("ApiVersions", None, "goes")


def test_a_line_of_releases_is_compared_as_its_newest_patch(run, release):
    line, patch = (run("versions", release.bootstrap, "--against", name) for name in ("4.0", "4.0.2"))
    assert line.code == 0
    assert line.out.replace("4.0.2", "4.0").split() == patch.out.replace("4.0.2", "4.0").split()


def test_a_release_that_nobody_knows_is_an_error(run, release):
    ran = run("versions", release.bootstrap, "--against", "1.0")
    assert (ran.code, ran.out) == (2, "")
    assert "release='1.0'" in ran.err


def test_features_are_answered_one_by_one(run, release, tmp_path):
    path = tmp_path / "features.toml"
    path.write_text('[old]\nProduce = "3-4"\n[new]\nProduce = "13+"\n')
    ran = run("versions", release.bootstrap, "--feature", path)
    assert ran.code == 1
    can, cannot = ran.out.splitlines()[-2:]
    assert can == "old can be used"
    assert cannot.startswith(
        f"new cannot be used: needs Produce 13+ (Kafka 4.1 or newer); {release.bootstrap} has 0-11"
    )
    told = [
        json.loads(line) for line in run("versions", release.bootstrap, "--feature", path, "--json").out.splitlines()
    ]
    assert [(row["feature"], row["usable"]) for row in told if "feature" in row] == [("old", True), ("new", False)]


def test_the_levels_that_a_cluster_has_settled_on_are_told(run, release):
    kind = messages.ApiVersionsResponse

    def told(_):
        return kind(
            api_keys=[kind.ApiVersion(api_key=api, min_version=low, max_version=high) for api, (low, high) in MODERN],
            supported_features=[kind.SupportedFeatureKey(name="metadata.version", min_version=7, max_version=30)],
            finalized_features=[kind.FinalizedFeatureKey(name="metadata.version", max_version_level=25)],
            finalized_features_epoch=4,
        )

    release.script("ApiVersions", *[told] * 4)  # each of two runs is refused version 5, and asks again
    assert "The cluster has settled on metadata.version 25." in run("versions", release.bootstrap).out.splitlines()
    rows = [json.loads(line) for line in run("versions", release.bootstrap, "--json").out.splitlines()]
    (found,) = [row for row in rows if "cluster_feature" in row]
    assert found == {"cluster_feature": "metadata.version", "level": 25, "brokers": {release.bootstrap: [7, 30]}}
