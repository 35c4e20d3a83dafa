"""What an audit predicts happens: clients are watched on one release, judged for another, and run against it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tagwire.capture import Losses, Outcome, observe
from tagwire.capture.request_log import FORWARDED
from tagwire.rpc.names import api_name

from .conftest import Count, not_run_without
from .peer import NotRunError
from .try_clients import RELEASES as TRIED_ON
from .try_clients import TABLE
from .walkers import Walked, Walker, fetch, walk_all
from .watched_broker import ANY, Counts, watched

RELEASES = {
    "1.1.1": "DEBUG",
    "2.6.3": "DEBUG",
    "2.8.2": "DEBUG",
    "3.9.2": "DEBUG",
    "4.0.0": "DEBUG",
    "4.0.2": "DEBUG",
    "4.3.1": "TRACE",
    "4.4.0": "DEBUG",
}
"""Each with the level of its request log. The first two write it as text; they are in no table of releases."""

BEFORE = "3.9.2"
TARGETS = tuple(release for release in RELEASES if release >= "2.8")
SELDOM = {"2.6.3", "2.8.2", "4.0.2"}
"""What nightly tests try; their neighbours among the releases differ from them in little."""

each_release = pytest.mark.parametrize(
    "release", [pytest.param(name, marks=pytest.mark.nightly if name in SELDOM else ()) for name in RELEASES]
)
CLIENTS = (
    ("aiokafka", "0.8.1"),
    ("aiokafka", "0.14.0"),
    ("franz-go", "1.0.0"),
    ("franz-go", "1.22.2"),
    ("java", "0.10.0.1"),
    ("java", "0.11.0.3"),
    ("java", "2.0.1"),
    ("java", "2.4.1"),
    ("java", "2.8.2"),
    ("java", "4.4.0"),
    ("kafka-go", "0.4.30"),
    ("kafka-go", "0.4.51"),
    ("kafka-node", "5.0.0"),
    ("kafka-python", "1.4.7"),
    ("kafka-python", "2.0.2"),
    ("kafka-python", "2.2.0"),
    ("kafka-python", "3.0.12"),
    ("kafkajs", "1.16.0"),
    ("kafkajs", "2.2.4"),
    ("librdkafka", "0.11.6"),
    ("librdkafka", "1.0.1"),
    ("librdkafka", "1.9.2"),
    ("librdkafka", "2.15.0"),
    ("sarama", "1.27.0", "0.10.2.0"),
    ("sarama", "1.27.0", "2.1.0"),
    ("sarama", "1.27.0", "2.1.0", "24h"),
    ("sarama", "1.43.0"),
)
ALIASES = {"kafka-node-client": "kafka-node-5.0.0"}
"""A client id that a client takes in place of the one that it was given."""

Predictions = Mapping[str, Mapping[str, Outcome]]
"""{a client's name: {target: outcome}}."""


@dataclass(frozen=True)
class Evidence:
    """Clients that walked on one release, and what watched them.

    Attributes:
        walked: {client's name: what came of it}.
        log: the broker's request log.
        tapped, dumped: folders of captures, `dumped` None where tcpdump cannot be run.
        logged: what the log has.
        counts: what the broker had counted before its log was read, and after.
    """

    walked: Mapping[str, Walked]
    log: Path
    tapped: Path
    dumped: Path | None
    logged: Counts
    counts: tuple[Counts, Counts]


@pytest.fixture(scope="module")
def walkers(count: Count) -> list[Walker]:
    found = []
    for client in CLIENTS:
        try:
            found.append(fetch(*client))
        except NotRunError as error:
            count(f"NOT RUN: {error}")
    if not found:
        pytest.skip("NOT RUN: no client could be fetched")
    return found


@pytest.fixture(scope="module")
def evidence(
    walkers: list[Walker], count: Count, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Evidence]:
    """Release -> what its broker saw. Each is run once; a test whose broker cannot be had is skipped as NOT RUN."""
    known: dict[str, Evidence] = {}

    def again(release: str, walker: Walker) -> bool:
        """Of a failure that is predicted, once is enough."""
        if release == BEFORE or release not in TARGETS:
            return True
        return predicted(of(BEFORE).log, walkers)[walker.name][release] is Outcome.WORKS

    def of(release: str) -> Evidence:
        if release not in known:
            folder = tmp_path_factory.mktemp(f"watched-{release}")
            with not_run_without(), watched(release, folder, level=RELEASES[release]) as broker:
                walked = walk_all(walkers, broker.address, partial(again, release))
                before = broker.counts()
                logged = read(broker.log)
                counts = before, broker.counts()
            known[release] = Evidence(walked, broker.log, broker.tapped, broker.dumped, logged, counts)
        return known[release]

    return of


def read(log: Path) -> Counts:
    """Requests by API and version, as a request log tells them; those that a controller was handed, too, which a broker
    counts again."""
    losses, found = Losses(), Counter[tuple[str, int]]()
    for seen in observe(log, losses):
        found[api_name(seen.api_key), seen.api_version] += seen.count
    assert set(losses.counts) <= {FORWARDED}, losses
    with open(log, encoding="utf-8") as lines:
        handed_on = [line for line in lines if '"isForwarded":true' in line]
    assert len(handed_on) == losses.counts[FORWARDED]
    for line in handed_on:
        header = json.loads(line.partition("Completed request:")[2].rpartition(" (")[0])["requestHeader"]
        found[api_name(header["requestApiKey"]), header["requestApiVersion"]] += 1
    return found


@each_release
def test_a_request_log_is_read_whole(release: str, evidence: Callable[[str], Evidence], count: Count) -> None:
    """A broker goes on asking itself, so its counters are read before the log is, and after."""
    found = evidence(release)
    before, after = found.counts
    logged = dict(found.logged)
    for (api, _), number in found.logged.items():  # before 2.0 brokers counted by API alone
        logged[api, ANY] = logged.get((api, ANY), 0) + number
    for asked in before:
        assert before[asked] <= logged.get(asked, 0) <= after[asked], asked
    assert len(before) > 12
    count(f"Kafka {release}: its request log has {sum(found.logged.values())} requests, as its counters say")


@each_release
def test_all_evidence_of_the_same_requests_tells_the_same(
    release: str, evidence: Callable[[str], Evidence], walkers: list[Walker]
) -> None:
    """Of clients that were refused nothing: a request that a broker cannot read is in no log of it."""
    found = evidence(release)
    told = [predicted(path, walkers) for path in (found.log, found.tapped, found.dumped) if path is not None]
    assert len(told) > 1
    for name in (walker.name for walker in walkers if found.walked[walker.name].works):
        assert all(each[name] == told[0][name] for each in told), name


@pytest.mark.parametrize("release", [pytest.param("2.6.3", marks=pytest.mark.nightly), BEFORE, "4.4.0"])
def test_a_log_that_began_after_clients_had_connected_tells_the_same(
    release: str, evidence: Callable[[str], Evidence], walkers: list[Walker], tmp_path: Path
) -> None:
    """What a client asks when it connects, and is told, is not in it."""
    found = evidence(release)
    late = tmp_path / "late.log"
    with open(found.log, "rb") as lines:
        late.write_bytes(b"".join(line for line in lines if b"API_VERSIONS" not in line))
    told, whole = predicted(late, walkers), predicted(found.log, walkers)
    for name in (walker.name for walker in walkers if found.walked[walker.name].works):
        assert told[name] == whole[name], name


@each_release
def test_a_verdict_is_what_happens(
    release: str, evidence: Callable[[str], Evidence], walkers: list[Walker], count: Count
) -> None:
    found = evidence(release)
    told_of = predicted(found.log, walkers)
    targets = [target for target in TARGETS if release in SELDOM or target not in SELDOM]
    happened = {target: evidence(target).walked for target in targets}
    told: Counter[Outcome] = Counter()
    wrong = []
    if release == BEFORE:
        count(f"{'seen on ' + BEFORE:28}" + "".join(f"{target:>22}" for target in targets))
    for walker in walkers:
        if not found.walked[walker.name].works:
            continue
        cells = []
        for target in targets:
            outcome, fate = told_of[walker.name][target], happened[target][walker.name]
            told[outcome] += 1
            cells.append(f"{outcome.value + ' > ' + str(fate):>22}")
            if outcome.value != str(fate):
                wrong.append((walker.name, target, outcome.value, str(fate), fate.said[-300:]))
        if release == BEFORE:
            count(f"{walker.name:28}" + "".join(cells))
    said = ", ".join(f"{number} {outcome.value}" for outcome, number in told.items())
    count(f"Seen on Kafka {release}, judged for {len(targets)} releases: {said}; {len(wrong)} came otherwise")
    assert not wrong
    assert release != BEFORE or set(told) == {Outcome.WORKS, Outcome.BREAKS}


@pytest.mark.parametrize(
    "release", [pytest.param(name, marks=pytest.mark.nightly if name in SELDOM else ()) for name in TRIED_ON]
)
def test_the_table_of_clients_that_were_tried_is_true(
    release: str, evidence: Callable[[str], Evidence], walkers: list[Walker]
) -> None:
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    stated = {
        walker.name: table[walker.software][walker.version][release]
        for walker in walkers
        if not walker.last and walker.version in table.get(walker.software, {})
        if evidence(BEFORE).walked[walker.name].works  # here, too
    }
    assert stated == {name: evidence(release).walked[name].works for name in stated}


def predicted(path: Path, walkers: list[Walker]) -> Predictions:
    """What an audit of `path` says of each client: the worst, where it is told in several rows."""
    if path not in _PREDICTED:
        _PREDICTED[path] = _audited(path, walkers)
    return _PREDICTED[path]


_PREDICTED: dict[Path, Predictions] = {}


def _audited(path: Path, walkers: list[Walker]) -> Predictions:
    command = [sys.executable, "-m", "tagwire", "audit", str(path), "--target", ",".join(TARGETS), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode in (0, 1), done.stderr
    names = {walker.client_id: walker.name for walker in walkers}
    found: dict[str, dict[str, Outcome]] = {name: {} for name in names.values()}
    for line in done.stdout.splitlines():
        client = json.loads(line)
        name = names.get(ALIASES.get(client["client_id"], client["client_id"]))
        for target, verdict in client["verdicts"].items() if name else ():
            both = {Outcome(verdict["outcome"]), found[name].get(target, Outcome.WORKS)}
            found[name][target] = max(both, key=list(Outcome).index)
    return found
