"""The report of an audit: one HTML page that needs no network and no script, on a screen, a phone or paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tagwire.capture.census import Census, Usage
from tagwire.capture.observation import Losses, Place
from tagwire.capture.report_charts import charts
from tagwire.capture.verdicts import Cause, Finding, Outcome, Verdict, features_of, judge, served_to_clients, since
from tagwire.escaping import html_text
from tagwire.rpc.names import api_name
from tagwire.spec import releases

_MARKS: Final = {Outcome.WORKS: "✓", Outcome.UNCERTAIN: "?", Outcome.BREAKS: "✗"}
_OLDEST: Final = "2.8"
STYLE: Final = Path(__file__).with_name("report.css")
"""How pages of this package look, on a screen, a phone and paper, by light and in the dark."""

Judged = Sequence[tuple[Usage, Sequence[Verdict]]]
"""The clients, each with its verdicts, by target in the same order."""


def write_report(path: Path, census: Census, judged: Judged, losses: Losses, files: int) -> None:
    """Writes the page.

    Args:
        path: where; it appears there only when it is whole.
        census: what was seen, for the versions in use over time.
        judged: the clients, the worst first.
        losses: what was not understood.
        files: how many files were read.
    """
    targets = [verdict.target for verdict in judged[0][1]] if judged else []
    newest = targets[-1] if targets else releases.names()[-1]
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<title>{_headline(judged, targets)}</title>",
        f"<style>{STYLE.read_text('utf-8')}</style></head><body>",
        _head(judged, targets, files),
        "<main>",
        *([_matrix(judged, targets), *_clients(judged)] if judged else []),
        charts(census, {api for usage, _ in judged for api in usage.apis}, served_to_clients(newest), newest),
        _losses(losses),
        "</main>",
        _foot(),
        "</body></html>\n",
    ]
    part = path.with_name(path.name + ".part")
    part.write_text("\n".join(parts), "utf-8")
    part.rename(path)


def _head(judged: Judged, targets: Sequence[str], files: int) -> str:
    requests = sum(usage.count for usage, _ in judged)
    cards = "".join(
        _card(target, Counter(verdicts[at].outcome for _, verdicts in judged)) for at, target in enumerate(targets)
    )
    return (
        f"<header><p class='eyebrow'>Kafka clients, audited</p><h1>{_headline(judged, targets)}</h1>"
        f"<p class='quiet'>{_many(len(judged), 'client')}, {_many(requests, 'request')}, {_many(files, 'file')}"
        f"{_span(judged)}</p><ul class='targets'>{cards}</ul></header>"
    )


def _headline(judged: Judged, targets: Sequence[str]) -> str:
    """The verdict for the last of the targets."""
    if not judged:
        return "No client was seen"
    target = html_text(targets[-1])
    counts = Counter(verdicts[-1].outcome for _, verdicts in judged)
    if breaking := counts[Outcome.BREAKS]:
        verb = "breaks" if breaking == 1 else "break"
        return f"{breaking} of {_many(len(judged), 'client')} {verb} on Kafka {target}"
    if open_ := counts[Outcome.UNCERTAIN]:
        return f"Nothing breaks for certain on Kafka {target}; of {_many(open_, 'client')} it cannot be told"
    return f"Every client that was seen works with Kafka {target}"


def _card(target: str, counts: Counter[Outcome]) -> str:
    told = [outcome for outcome in reversed(Outcome) if counts[outcome]]
    share = "".join(f"<i class='{each.value}' style='flex-grow:{counts[each]}'></i>" for each in told)
    tally = "".join(
        f"<span class='{each.value}'>{_MARKS[each]} {counts[each]:,} {_verb(each, counts[each])}</span>"
        for each in told
    )
    return (
        f"<li><b>Kafka {html_text(target)}</b><div class='share' aria-hidden='true'>{share}</div>"
        f"<div class='tally'>{tally}</div></li>"
    )


def _verb(outcome: Outcome, count: int) -> str:
    plural = count != 1 and outcome is not Outcome.UNCERTAIN
    return outcome.value.removesuffix("s") if plural else outcome.value


def _span(judged: Judged) -> str:
    uses = [use for usage, _ in judged for versions in usage.apis.values() for use in versions.values()]
    times = [use.first for use in uses if use.first >= 0] + [use.last for use in uses if use.last >= 0]
    return f", {_period(min(times), max(times))} UTC" if times else ""


def _matrix(judged: Judged, targets: Sequence[str]) -> str:
    shown = _columns(targets)
    heads = "".join(f"<th scope='col' class='release {_kind(name, targets)}'>{html_text(name)}</th>" for name in shown)
    rows = []
    for at, (usage, _) in enumerate(judged):
        cells = "".join(
            f"<td class='release {_kind(name, targets)}'>{_mark(judge(usage, name).outcome)}</td>" for name in shown
        )
        rows.append(
            f"<tr><th scope='row'><a href='#client-{at}'>{html_text(_name(usage))}</a>"
            f"<span class='who'>{html_text(_who(usage))}</span></th>{cells}<td class='number'>{usage.count:,}</td></tr>"
        )
    return (
        "<section><h2 id='matrix'>Clients and releases</h2>"
        "<p class='quiet'>✓ works, ? the evidence does not tell, ✗ breaks; the chosen releases are underlined.</p>"
        "<div class='panel' tabindex='0' role='region' aria-labelledby='matrix'><table class='matrix'>"
        f"<thead><tr><th scope='col'>client</th>{heads}<th scope='col' class='number'>requests</th></tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div></section>"
    )


def _kind(release: str, targets: Sequence[str]) -> str:
    """Its column's class: a phone has room for the targets alone."""
    return "target" if release in targets else "other"


def _columns(targets: Sequence[str]) -> list[str]:
    """The releases from the oldest of interest on; a row of which targets are patches is shown by those."""
    names = releases.names()
    columns: list[str] = []
    for name in names:
        chosen = sorted({target for target in targets if releases.row_of(target) == name})
        columns += chosen or ([name] if names.index(name) >= names.index(_OLDEST) else [])
    return columns


def _mark(outcome: Outcome) -> str:
    return (
        f"<span class='mark {outcome.value}' title='{outcome.value}'><span aria-hidden='true'>{_MARKS[outcome]}</span>"
        f"<span class='unseen'>{outcome.value}</span></span>"
    )


def _name(usage: Usage) -> str:
    client = usage.client
    return client.software or client.client_id or "unnamed software"


def _who(usage: Usage) -> str:
    """What else is known of it than its name."""
    client = usage.client
    told = [f"id {client.client_id}" if client.software and client.client_id else "", client.principal, client.address]
    return ", ".join(filter(None, told))


def _clients(judged: Judged) -> Iterator[str]:
    yield "<section><h2>Client by client</h2><p class='quiet'>What stands against it, and where that was seen.</p>"
    for at, (usage, verdicts) in enumerate(judged):
        opened = " open" if any(verdict.outcome is not Outcome.WORKS for verdict in verdicts) else ""
        badges = "".join(
            f"<span class='badge {verdict.outcome.value}'>{html_text(verdict.target)} {verdict.outcome.value}</span>"
            for verdict in verdicts
        )
        yield (
            f"<details id='client-{at}'{opened}><summary><strong>{html_text(_name(usage))}</strong>"
            f"<span class='quiet'>{html_text(_who(usage))}</span><span class='badges'>{badges}</span></summary>"
        )
        asks = "asks brokers for their versions" if usage.asks_versions else "was not seen to ask for versions"
        depends = ", ".join(map(_feature, features_of(usage))) or "none of what came after Kafka 0.10"
        yield f"<div class='about'><p class='quiet'>{_many(usage.connections, 'connection')}; it {asks}.</p>"
        yield f"<p class='quiet'>It depends on: {html_text(depends)}.</p>"
        yield from _explained(verdicts)
        yield f"{_versions(usage, verdicts)}</div></details>"
    yield "</section>"


def _feature(name: str) -> str:
    first = since(name)
    return name if first is None else f"{name} (served from Kafka {first} on)"


def _explained(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """What stands against a client, each version of an API once for all the targets that do not serve it."""
    found: dict[tuple[int, int, Cause], list[tuple[str, Finding]]] = {}
    for verdict in verdicts:
        for finding in verdict.findings:
            for version in finding.versions:
                found.setdefault((finding.api, version, finding.cause), []).append((verdict.target, finding))
    if not found:
        return
    listed = "".join(_finding(api, version, told) for (api, version, _), told in sorted(found.items(), key=_by_api))
    yield f"<h3>What is not served</h3><ul class='findings'>{listed}</ul>"
    for advice, targets in _advice(verdicts).items():
        on = f"<b>{html_text(', '.join(targets))}</b>: " if len(verdicts) > 1 else ""
        yield f"<p class='advice'>{on}{html_text(advice)}</p>"


def _by_api(item: tuple[tuple[int, int, Cause], object]) -> tuple[int, int, str]:
    (api, version, cause), _ = item
    return api, version, cause.name


def _finding(api: int, version: int, told: Sequence[tuple[str, Finding]]) -> str:
    finding = told[0][1]
    use = finding.versions[version]
    served = "".join(
        f"<span class='chip'>{html_text(target)}: {each.served.versions if each.served is not None else 'none'}</span>"
        for target, each in told
    )
    return (
        f"<li class='{finding.outcome.value}'><b>{html_text(api_name(api))} v{version}</b>"
        f"<p class='served'><span class='quiet'>served:</span> {served}</p><p>{html_text(_sentence(finding.cause))}</p>"
        f"<p class='quiet'>{_many(use.count, 'request')}{_when_used(use.first, use.last)}, seen in "
        f"{_evidence(use.places)}</p></li>"
    )


def _sentence(cause: Cause) -> str:
    return f"{cause.value[0].upper()}{cause.value[1:]}."


def _advice(verdicts: Sequence[Verdict]) -> dict[str, list[str]]:
    """{what can be done: the targets for which it can}."""
    found: dict[str, list[str]] = {}
    for verdict in verdicts:
        said = []
        if verdict.works_until is not None:
            said.append(f"It works until Kafka {verdict.works_until}.")
        if verdict.upgrade is not None:
            said.append(f"The oldest release that is known to work is {verdict.upgrade}.")
        if said:
            found.setdefault(" ".join(said), []).append(verdict.target)
    return found


def _when_used(first: int, last: int) -> str:
    return f", {_period(first, last)} UTC" if first >= 0 else ""


def _evidence(places: Iterable[Place]) -> str:
    return " and ".join(f"<code>{html_text(place.file)}</code> at byte {place.position:,}" for place in places)


def _versions(usage: Usage, verdicts: Sequence[Verdict]) -> str:
    """All that it speaks; what one of the targets does not serve stands out."""
    gone = {(each.api, version) for verdict in verdicts for each in verdict.findings for version in each.versions}
    rows = []
    for api, versions in sorted(usage.apis.items()):
        chips = "".join(
            f"<span class='chip{' gone' if (api, version) in gone else ''}'>v{version} × {use.count:,}</span>"
            for version, use in sorted(versions.items())
        )
        rows.append(f"<dt>{html_text(api_name(api))}</dt><dd>{chips}</dd>")
    return f"<h3>What it speaks</h3><dl>{''.join(rows)}</dl>"


def _losses(losses: Losses) -> str:
    if not losses.counts:
        return ""
    rows = "".join(
        f"<tr><th scope='row'>{html_text(reason)}</th><td class='number'>{count:,}</td>"
        f"<td>{_evidence([losses.first[reason]])}</td></tr>"
        for reason, count in losses.counts.most_common()
    )
    return (
        "<section><h2 id='left-out'>What was left out</h2>"
        "<div class='panel' tabindex='0' role='region' aria-labelledby='left-out'><table><thead><tr>"
        "<th scope='col'>what</th><th scope='col' class='number'>how often</th><th scope='col'>first</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></div></section>"
    )


def _foot() -> str:
    return (
        "<footer class='quiet'><p>A verdict is about what was seen: a client that was silent in the meantime is in no "
        "list. Releases are judged by the versions that each of them serves, patch by patch, and not by the flags with "
        "which brokers mark versions as deprecated.</p><p>Made by tagwire.</p></footer>"
    )


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _period(first: int, last: int) -> str:
    start, end = (datetime.fromtimestamp(time // 1_000_000, UTC) for time in (first, last))
    if f"{start:%Y-%m-%d %H:%M}" == f"{end:%Y-%m-%d %H:%M}":
        return f"{start:%Y-%m-%d %H:%M}"
    same_day = start.date() == end.date()
    return f"{start:%Y-%m-%d %H:%M} to {end.strftime('%H:%M' if same_day else '%Y-%m-%d %H:%M')}"
