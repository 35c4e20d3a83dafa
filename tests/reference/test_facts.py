"""What the reference says of a message is true of its spec, of the table of releases and of the broker."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

from tagwire import broker
from tagwire.errors import Error
from tagwire.reference import notes
from tagwire.reference.examples import example
from tagwire.reference.fields import changes, field_rows
from tagwire.reference.release_pages import release_changes
from tagwire.reference.served import eras, lives, served
from tagwire.reference.speakers import speakers
from tagwire.reference.subject_facts import subject_facts
from tagwire.reference.subjects import kafkas, named, of_specs
from tagwire.spec import Versions, catalog, releases
from tagwire.spec.api_keys import API_NAMES, ApiKey

from .test_examples import VERSIONS

HANDLERS = Path(broker.__file__).parent / "handlers"
DATA = Path(notes.__file__).parent / "data"

OTHER_RECORDS = {("ProduceRequest", 2), ("ProduceRequest", 3), ("FetchResponse", 2), ("FetchResponse", 4)}
"""Versions with the same fields as before, in which records have another format."""


def test_neighbouring_versions_say_the_same_exactly_where_nothing_is_told_to_have_changed() -> None:
    pairs = different = 0
    for message in map(catalog.message, catalog.names()):
        for version in list(message.valid_versions)[1:]:
            told = changes(message, version - 1, version)
            of_bytes = [change for change in told if "null" not in change.text or change.kind != "changed"]
            if (message.name, version) in OTHER_RECORDS:
                continue
            same = example(message, version - 1).data == example(message, version).data
            assert same == (not of_bytes), f"{message.name} v{version}: {told}"
            pairs += 1
            different += not same
    first = sum(bool(catalog.message(name).valid_versions) for name in catalog.names())
    assert pairs == VERSIONS - first - len(OTHER_RECORDS)
    assert different > 200


def test_changes_lead_from_the_fields_of_one_version_to_those_of_the_next() -> None:
    for message in map(catalog.message, catalog.names()):
        rows = field_rows(message)
        for version in list(message.valid_versions)[1:]:
            told = changes(message, version - 1, version)
            before = {row.path for row in rows if version - 1 in row.versions}
            after = {row.path for row in rows if version in row.versions}
            gone = {change.field for change in told if change.kind == "removed"}
            come = {change.field for change in told if change.kind == "added"}
            assert {path for path in before if not _in(path, gone)} | {
                path for path in after if _in(path, come)
            } == after


def _in(path: str, structs: set[str]) -> bool:
    return any(path == struct or path.startswith(f"{struct}.") for struct in structs)


def test_every_subject_says_in_our_words_what_it_is_for() -> None:
    for subject in kafkas():
        said = notes.purpose(subject.path)
        assert said.endswith("."), subject.name
        assert "  " not in said


def test_what_is_written_down_is_about_messages_versions_errors_and_proposals_that_are_there() -> None:
    known = {subject.path: subject for subject in kafkas()}
    kips = notes.kips()
    for path, versions in json.loads((DATA / "versions.json").read_text(encoding="utf-8")).items():
        for version, why in versions.items():
            assert int(version) in known[path].versions, f"{path} v{version}"
            assert why.keys() <= {"kips", "text"}
            assert all(kip in kips for kip in why.get("kips", ()))
    assert json.loads((DATA / "purposes.json").read_text(encoding="utf-8")).keys() == known.keys()
    assert json.loads((DATA / "errors.json").read_text(encoding="utf-8")).keys() <= set(API_NAMES.values())
    assert json.loads((DATA / "advice.json").read_text(encoding="utf-8")).keys() <= set(Error.__members__)
    assert all(re.fullmatch(r"KIP-\d+", kip) for kip in kips)


@pytest.mark.parametrize("path", sorted(HANDLERS.glob("[a-z]*.py")), ids=lambda path: path.stem)
def test_what_a_handler_of_the_broker_answers_is_among_the_errors_of_its_api(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    answered = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Error"
    }
    name = API_NAMES[ApiKey[path.stem.upper()]]
    assert answered - {"NONE", "UNKNOWN_SERVER_ERROR"} <= {one.error.name for one in notes.api_errors(name)}


@pytest.mark.parametrize("name", ["Produce", "TxnOffsetCommit"])
def test_what_adds_its_partitions_to_a_transaction_itself_may_be_told_that_the_one_before_is_still_ending(
    name: str,
) -> None:
    assert Error.CONCURRENT_TRANSACTIONS in [each.error for each in notes.api_errors(name)]  # KIP-890


def test_an_error_without_advice_of_its_own_is_told_by_whether_it_passes() -> None:
    assert "metadata" in notes.advice(Error.NOT_LEADER_OR_FOLLOWER)
    assert "backoff" in notes.advice(Error.NOT_ENOUGH_REPLICAS)
    assert "caller" in notes.advice(Error.INVALID_CONFIG)


def test_a_version_says_since_when_it_is_served_deprecated_and_gone() -> None:
    told = {life.version: life for life in lives(ApiKey.PRODUCE, Versions(0, 13))}
    assert (told[0].since, told[0].deprecated, told[0].spared, told[0].removed) == ("0.8.2", "3.7", None, "4.0.0")
    assert (told[3].deprecated, told[3].spared, told[3].removed) == ("3.7", "3.9", None)
    assert (told[13].since, told[13].removed) == ("4.1", None)
    back = {life.version: life for life in lives(ApiKey.JOIN_GROUP, Versions(0, 9))}
    assert back[0].removed is None  # 4.0.0 dropped it, 4.0.1 brought it back


def test_eras_are_what_each_release_serves() -> None:
    names = releases.names()
    for api in API_NAMES:
        told = {}
        for era in eras(api):
            for name in names[names.index(era.first) : names.index(era.last) + 1]:
                told[name] = era.served
        assert {name: one for name, one in told.items() if one} == {
            name: served(name)[api] for name in names if api in served(name)
        }


def test_what_a_release_changed_is_the_difference_of_what_both_serve() -> None:
    found = {change.api: change for change in release_changes("3.9", "4.0.0")}
    assert found[ApiKey.PRODUCE].lost == (0, 1, 2)
    assert found[ApiKey.PRODUCE].gained == (12,)
    assert found[ApiKey.LEADER_AND_ISR].new is None
    assert release_changes("4.4", "4.4") == []


def test_others_use_the_versions_they_were_seen_to_use_and_kafkas_own_client_no_more_than_both_have() -> None:
    told = {one.name: one for one in speakers(ApiKey.FETCH, "Fetch")}
    assert told["librdkafka 2.15.0"].versions["2.8"] == "12"
    assert told["Kafka's Java client 3.9"].versions == {"2.8": "up to 12", "3.9": "up to 17", "4.4": "up to 17"}
    assert speakers(ApiKey.VOTE, "Vote") == speakers(ApiKey.WRITE_SHARE_GROUP_STATE, "WriteShareGroupState") == []
    told = {one.name: one for one in speakers(ApiKey.ADD_PARTITIONS_TO_TXN, "AddPartitionsToTxn")}
    assert told["Kafka's Java client 4.4"].versions["4.4"] == "up to 3"  # from 4 on it is asked by brokers


def test_a_users_marks_are_facts_of_the_page(tmp_path: Path) -> None:
    request = {
        "apiKey": 4321,
        "type": "request",
        "listeners": ["broker"],
        "name": "GreetRequest",
        "validVersions": "0-2",
        "deprecatedVersions": "0",
        "doNotUseVersions": {"1": "loses the last letter"},
        "flexibleVersions": "1+",
        "headerVersions": {"0": "1", "1+": "2"},
        "fields": [{"name": "Name", "type": "string", "versions": "0+"}],
    }
    (tmp_path / "GreetRequest.json").write_text(json.dumps(request))
    (subject,) = of_specs(tmp_path)
    facts = subject_facts(subject)
    (message,) = facts["messages"]
    assert message["deprecated_versions"] == "0"
    assert message["do_not_use_versions"] == {"1": "loses the last letter"}
    assert message["header_versions"] == {"0": "1", "1+": "2"}
    assert [version["request"]["header_version"] for version in facts["details"]] == [1, 2, 2]


def test_a_subject_is_found_by_the_name_of_any_of_its_messages_whatever_its_case() -> None:
    for name in ("Fetch", "fetch", "FetchRequest", "fetchresponse"):
        found = named(name, kafkas())
        assert found is not None
        assert found.path == "apis/Fetch"
    former = named("AlterIsr", kafkas())
    assert former is not None
    assert former.name == "AlterPartition"
    value = named("OffsetCommitValue", kafkas())
    assert value is not None
    assert (value.path, value.topic) == ("records/OffsetCommit", "__consumer_offsets")
