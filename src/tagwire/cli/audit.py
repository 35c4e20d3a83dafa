"""`tagwire audit`: which clients break on another release of Kafka, by what they were seen to ask."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tagwire.cli.engine import local_spark
from tagwire.cli.options import Json
from tagwire.cli.terminal import print_json, print_rows, printable, progress, utc

if TYPE_CHECKING:
    from tagwire.capture import Census, Losses, Usage, Verdict

NEWEST = "4.4"


def audit(
    paths: Annotated[list[str], typer.Argument(metavar="PATH", show_default=False)],
    target: Annotated[
        str,
        typer.Option(
            "--target", metavar="RELEASE[,RELEASE]", help="Releases of Kafka to judge for; 4.0 is its newest patch."
        ),
    ] = NEWEST,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", file_okay=False, help="Write report.html and the Parquet files there."),
    ] = None,
    bodies: Annotated[
        bool, typer.Option("--bodies", help="Decode captured responses too, for their error codes.")
    ] = False,
    brokers: Annotated[
        bool, typer.Option("--brokers", help="Judge what looks like a broker or controller, too.")
    ] = False,
    with_spark: Annotated[
        bool, typer.Option("--spark", help="Read with all cores, by Spark: worth its start from a gigabyte on.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Say which clients work with a release of Kafka, by captures of what they ask.

    PATH is a request log of a broker (kafka.request.logger at DEBUG, in the form of any release), or a pcap or pcapng
    file of plain-text traffic; as it is or packed by gzip or zstd; a pipe that one of them is written to, - for
    standard input; or a directory or pattern of such files, where pipes are passed over. The exit code is 1 where some
    client breaks, 2 where there is no request to judge by.

    \b
    Examples:
      tagwire audit kafka-request.log* --target 4.3
      tagwire audit captures/ --target 4.0.0,4.0.1,4.3 --out audit
      tcpdump -i any -w capture.pcap port 9092 & sleep 600; kill %1; tagwire audit capture.pcap
      kubectl logs kafka-0 | tagwire audit -
      tagwire audit captures/ --json | jq 'select(.verdicts["4.4"].outcome == "breaks") | .client_id'
    """
    from tagwire.capture import Losses, Outcome, judge, paths_of
    from tagwire.capture.unseen import brokers_alone
    from tagwire.spec import releases

    targets = list(dict.fromkeys(name.strip() for name in target.split(",")))
    for name in targets:
        releases.served(name)
    losses = Losses()
    files = paths_of(paths, losses)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    census = (_gathered if with_spark else _read)(files, out, losses, bodies=bodies)
    everybody = census.usages()
    usages = [usage for usage in everybody if brokers or not usage.is_broker]
    if not usages:
        raise brokers_alone(files, len(everybody))
    judged = [(usage, [judge(usage, name) for name in targets]) for usage in usages]
    judged.sort(key=lambda one: -max(_severity(verdict) for verdict in one[1]))
    if out is not None:
        _write(out, census, judged, losses, len(files))
    if as_json:
        print_json(_document(usage, verdicts) for usage, verdicts in judged)
    else:
        _print(judged, targets)
    for line in _left_out(losses, brokers=len(everybody) - len(usages)):
        typer.echo(printable(line), err=as_json)
    if out is not None and not as_json:
        print(f"{out / 'report.html'}: the report; observations.parquet and verdicts.parquet beside it.")
    if any(verdict.outcome is Outcome.BREAKS for _, verdicts in judged for verdict in verdicts):
        raise typer.Exit(1)


def _read(files: list[Path], out: Path | None, losses: Losses, *, bodies: bool) -> Census:
    """All observations, gathered in this process. Raises CaptureError where there is none, as `_gathered` does."""
    from tagwire.capture import Census, nothing_seen, seen_in, take_census

    census = Census()
    with progress("Reading", len(files), unit="files") as advance, _kept(out) as keep:
        for path in files:
            for seen in seen_in(path, losses, bodies=bodies):
                take_census(census, seen)
                keep(seen)
            advance(1)
        if not census.usages():
            raise nothing_seen(files, losses)
    return census


def _gathered(files: list[Path], out: Path | None, losses: Losses, *, bodies: bool) -> Census:
    """All observations, gathered by Spark."""
    from tagwire.capture import nothing_seen, pieces
    from tagwire.spark.jobs.audit import gather, save

    for path in files:
        pieces(path, sys.maxsize)  # what tasks cannot share is told before Java starts
    with progress("Reading", unit="files"), local_spark() as spark:
        paths = [str(path) for path in files]
        census, lost = gather(spark, paths, bodies=bodies)
        losses.merge(lost)
        if not census.usages():
            raise nothing_seen(files, losses)
        if out is not None:
            save(spark, paths, out / "observations.parquet", bodies=bodies)
    return census


def _kept(out: Path | None) -> Any:
    """What keeps what was seen: writes it to Parquet, where that is asked for."""
    from contextlib import nullcontext

    if out is None:
        return nullcontext(lambda seen: None)
    from tagwire.capture.parquet import ObservationFile

    return ObservationFile(out / "observations.parquet")


def _severity(verdict: Verdict) -> int:
    from tagwire.capture import Outcome

    return list(Outcome).index(verdict.outcome)


def _write(out: Path, census: Census, judged: list[tuple[Usage, list[Verdict]]], losses: Losses, files: int) -> None:
    from tagwire.capture.parquet import write_verdicts
    from tagwire.capture.report import write_report

    write_verdicts(out / "verdicts.parquet", [verdict for _, verdicts in judged for verdict in verdicts])
    write_report(out / "report.html", census, judged, losses, files)


def _print(judged: list[tuple[Usage, list[Verdict]]], targets: list[str]) -> None:
    rows = [
        (*_names(usage), str(usage.count), *(verdict.outcome.value for verdict in verdicts))
        for usage, verdicts in judged
    ]
    titles = ("software", "client id", "principal", "address", "requests", *targets)
    print_rows(titles, rows, numbers=(4,))
    for _, verdicts in judged:
        for line in _explained(verdicts):
            print(printable(line))
    print(_summary(judged, targets))


def _left_out(losses: Losses, *, brokers: int) -> Iterator[str]:
    """Of what there is no verdict. Programs are told too: who is not among those judged may break."""
    if brokers:
        yield f"{brokers} more look like brokers or controllers: --brokers judges them, too."
    for reason, count in losses.counts.most_common():
        yield f"Left out: {count} x {reason}, first in {losses.first[reason]}."


def _names(usage: Usage) -> tuple[str, str, str, str]:
    client = usage.client
    return client.software or "-", client.client_id or "-", client.principal or "-", client.address or "-"


def _explained(verdicts: list[Verdict]) -> Iterator[str]:
    """What stands against a client, the targets together of which the same is to be said."""
    said: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for verdict in verdicts:
        if reasons := tuple(_reasons(verdict)):
            said.setdefault((verdict.outcome.value, reasons), []).append(verdict.target)
    for (outcome, reasons), targets in said.items():
        yield ""
        yield f"{verdicts[0].client}: {outcome} on {', '.join(targets)}"
        yield from reasons


def _reasons(verdict: Verdict) -> Iterator[str]:
    from tagwire.capture import Outcome

    for finding in verdict.findings:
        if finding.outcome is Outcome.WORKS:
            continue
        last = max(finding.versions.values(), key=lambda use: use.last)
        when = f", last {utc(last.last // 1000)}" if last.last >= 0 else ""
        yield f"  {finding} ({_many(finding.count, 'request')}{when}, {last.places[-1]})"
    if verdict.works_until is not None:
        yield f"  It works until Kafka {verdict.works_until}."
    if verdict.upgrade is not None:
        yield f"  The oldest release that is known to work is {verdict.upgrade}."


def _summary(judged: list[tuple[Usage, list[Verdict]]], targets: list[str]) -> str:
    from tagwire.capture import Outcome

    requests = sum(usage.count for usage, _ in judged)
    parts = []
    for at, name in enumerate(targets):
        counts = Counter(verdicts[at].outcome for _, verdicts in judged)
        said = [f"{counts[outcome]} {_verb(outcome.value, counts[outcome])}" for outcome in Outcome if counts[outcome]]
        parts.append(f"on {_meant(name)}: {', '.join(said) or 'nothing to judge'}")
    return f"\n{_many(len(judged), 'client')}, {_many(requests, 'request')}; {'; '.join(parts)}."


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _meant(target: str) -> str:
    """A target, and which patch of it was judged where it has several that differ."""
    from tagwire.spec import releases

    patches = releases.patches(target)
    return target if target in (releases.row_of(target), *patches) else f"{target} (as {patches[-1]})"


def _verb(outcome: str, count: int) -> str:
    if outcome == "uncertain":
        return "uncertain"
    return outcome if count == 1 else outcome.removesuffix("s")


def _document(usage: Usage, verdicts: list[Verdict]) -> dict[str, Any]:
    from tagwire.capture import features_of
    from tagwire.rpc import api_name

    return {
        **usage.client._asdict(),
        "requests": usage.count,
        "connections": usage.connections,
        "asks_versions": usage.asks_versions,
        "features": features_of(usage),
        "apis": {
            api_name(api): {version: use.count for version, use in sorted(versions.items())}
            for api, versions in sorted(usage.apis.items())
        },
        "verdicts": {
            verdict.target: {
                "outcome": verdict.outcome.value,
                "works_until": verdict.works_until,
                "upgrade": verdict.upgrade,
                "findings": [
                    {
                        "api": api_name(finding.api),
                        "version": version,
                        "served": None if finding.served is None else str(finding.served.versions),
                        "outcome": finding.outcome.value,
                        "cause": finding.cause.value,
                        "requests": use.count,
                        "first": use.first,
                        "last": use.last,
                        "evidence": [{"file": place.file, "position": place.position} for place in use.places],
                    }
                    for finding in verdict.findings
                    for version, use in finding.versions.items()
                ],
            }
            for verdict in verdicts
        },
    }
