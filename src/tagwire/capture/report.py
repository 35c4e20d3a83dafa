"""The report of an audit: one HTML page that needs no network and no script, on a screen, a phone or paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Final

from tagwire.capture.census import MINUTE, Census, Usage
from tagwire.capture.observation import Losses, Place
from tagwire.capture.verdicts import Finding, Outcome, Verdict, features_of, judge
from tagwire.rpc.names import api_name
from tagwire.spec import releases

_MARKS: Final = {Outcome.WORKS: "✓", Outcome.UNCERTAIN: "?", Outcome.BREAKS: "✗"}
_OLDEST: Final = "2.8"
_BARS: Final = 48
_COLOURS: Final = ("#2b6cb0", "#dd6b20", "#2f855a", "#805ad5", "#b83280", "#975a16", "#319795", "#4a5568")
_STYLE: Final = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem; color: #1a202c; }
h1 { font-size: 1.6rem; margin: 0; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .4rem; }
h3 { font-size: 1rem; margin: 1rem 0 .2rem; } p { margin: .3rem 0; } .quiet { color: #4a5568; }
.cards { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1rem 0; }
.card { border: 1px solid #cbd5e0; border-radius: .5rem; padding: .6rem 1rem; min-width: 9rem; }
.card b { display: block; font-size: 1.1rem; } .card span { white-space: nowrap; margin-right: .6rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; }
td, th { padding: .25rem .7rem .25rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid #e2e8f0; }
th { border-bottom: 2px solid #cbd5e0; white-space: nowrap; } .number { text-align: right; }
td.number { font-variant-numeric: tabular-nums; } td.verdict { text-align: center; padding: .25rem .5rem; }
.works { color: #22543d; background: #e6f6ec; } .uncertain { color: #744210; background: #fdf3d7; }
.breaks { color: #742a2a; background: #fde3e3; font-weight: 600; } .target { border-bottom-color: #1a202c; }
details { border: 1px solid #e2e8f0; border-radius: .4rem; margin: .4rem 0; padding: .3rem .8rem; }
summary { cursor: pointer; } code { background: #edf2f7; padding: 0 .25rem; overflow-wrap: anywhere; }
figure { margin: .6rem 0 1.2rem; } figcaption { font-size: .9rem; } svg { width: 100%; height: auto; max-width: 46rem; }
.key { display: inline-block; width: .7rem; height: .7rem; margin: 0 .25rem 0 .7rem; }
@media (max-width: 40rem) { body { margin: 1rem auto; font-size: 14px; } .card { flex: 1 1 40%; } }
@media print { body { max-width: none; margin: 0; } .wide { overflow: visible; } td, th { padding-right: .35rem; }
  details { break-inside: avoid; } details::details-content { content-visibility: visible; block-size: auto; }
  .works, .uncertain, .breaks, .key, svg { print-color-adjust: exact; } }
"""


def write_report(
    path: Path, census: Census, judged: Sequence[tuple[Usage, Sequence[Verdict]]], losses: Losses, files: int
) -> None:
    """Writes the page.

    Args:
        path: where; it appears there only when it is whole.
        census: what was seen, for the versions in use over time.
        judged: the clients, each with its verdicts, by target in the same order.
        losses: what was not understood.
        files: how many files were read.
    """
    targets = [verdict.target for verdict in judged[0][1]] if judged else []
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<title>Kafka clients and {escape(', '.join(targets))}</title><style>{_STYLE}</style></head><body>",
        _head(judged, targets, files),
        _matrix(judged, targets),
        *_explanations(judged),
        _timeline(census),
        _losses(losses),
        "</body></html>\n",
    ]
    part = path.with_name(path.name + ".part")
    part.write_text("\n".join(parts), "utf-8")
    part.rename(path)


def _head(judged: Sequence[tuple[Usage, Sequence[Verdict]]], targets: Sequence[str], files: int) -> str:
    requests = sum(usage.count for usage, _ in judged)
    cards = []
    for at, target in enumerate(targets):
        counts = Counter(verdicts[at].outcome for _, verdicts in judged)
        said = "".join(
            f"<span class='{outcome.value}'>{_MARKS[outcome]} {counts[outcome]} {outcome.value}</span>"
            for outcome in reversed(Outcome)
            if counts[outcome]
        )
        cards.append(f"<div class='card'><b>Kafka {escape(target)}</b>{said}</div>")
    return (
        "<h1>Which clients break</h1>"
        f"<p class='quiet'>{len(judged)} clients, {requests:,} requests, {files} file{'' if files == 1 else 's'}"
        f"{_span(judged)}</p><div class='cards'>{''.join(cards)}</div>"
    )


def _span(judged: Sequence[tuple[Usage, Sequence[Verdict]]]) -> str:
    uses = [use for usage, _ in judged for versions in usage.apis.values() for use in versions.values()]
    times = [use.first for use in uses if use.first >= 0] + [use.last for use in uses if use.last >= 0]
    return f", {_when(min(times))} to {_when(max(times))}" if times else ""


def _matrix(judged: Sequence[tuple[Usage, Sequence[Verdict]]], targets: Sequence[str]) -> str:
    names = releases.names()
    shown = list(dict.fromkeys([*names[names.index(_OLDEST) :], *targets]))
    heads = "".join(f"<th class='{'target' if name in targets else ''}'>{escape(name)}</th>" for name in shown)
    rows = []
    for at, (usage, _) in enumerate(judged):
        outcomes = [judge(usage, name).outcome for name in shown]
        cells = "".join(
            f"<td class='verdict {outcome.value}' title='{outcome.value} on {escape(name)}'>{_MARKS[outcome]}</td>"
            for name, outcome in zip(shown, outcomes)
        )
        rows.append(f"<tr><td><a href='#client-{at}'>{_software(usage)}</a></td>{_who(usage)}{cells}</tr>")
    return (
        "<h2>Clients and releases</h2><p class='quiet'>✓ works, ? the evidence does not tell, ✗ breaks</p>"
        "<div class='wide'><table><thead><tr><th>software</th><th>client id</th><th>principal</th><th>address</th>"
        f"<th class='number'>requests</th>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _software(usage: Usage) -> str:
    return escape(usage.client.software or "unnamed")


def _who(usage: Usage) -> str:
    client = usage.client
    texts = (client.client_id or "", client.principal, client.address)
    cells = "".join(f"<td>{escape(text)}</td>" for text in texts)
    return f"{cells}<td class='number'>{usage.count:,}</td>"


def _explanations(judged: Sequence[tuple[Usage, Sequence[Verdict]]]) -> Iterable[str]:
    yield "<h2>Client by client</h2>"
    for at, (usage, verdicts) in enumerate(judged):
        opened = " open" if any(verdict.outcome is Outcome.BREAKS for verdict in verdicts) else ""
        said = ", ".join(f"{escape(verdict.target)}: {verdict.outcome.value}" for verdict in verdicts)
        yield f"<details id='client-{at}'{opened}><summary>{escape(str(usage.client))} ({said})</summary>"
        asks = "asks brokers for their versions" if usage.asks_versions else "was not seen to ask for versions"
        depends = ", ".join(features_of(usage)) or "none of what came after Kafka 0.10"
        connections = f"{usage.connections} connection{'' if usage.connections == 1 else 's'}"
        yield f"<p class='quiet'>{connections}; {asks}; depends on: {escape(depends)}.</p>"
        for verdict in verdicts:
            yield from _explained(verdict)
        yield _versions(usage) + "</details>"


def _explained(verdict: Verdict) -> Iterable[str]:
    if not verdict.findings:
        return
    yield f"<h3>On Kafka {escape(verdict.target)} it {_says(verdict.outcome)}</h3>"
    if verdict.works_until is not None:
        yield f"<p>It works until Kafka {escape(verdict.works_until)}.</p>"
    if verdict.upgrade is not None:
        yield f"<p>The oldest Kafka client that works is {escape(verdict.upgrade)}.</p>"
    rows = "".join(_finding(finding) for finding in verdict.findings)
    yield (
        "<div class='wide'><table><thead><tr><th>API</th><th>version</th><th>served</th><th>why</th>"
        "<th class='number'>requests</th><th>first</th><th>last</th><th>evidence</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def _says(outcome: Outcome) -> str:
    return "may or may not work" if outcome is Outcome.UNCERTAIN else outcome.value


def _finding(finding: Finding) -> str:
    served = "none" if finding.served is None else str(finding.served.versions)
    return "".join(
        f"<tr class='{finding.outcome.value}'><td>{escape(api_name(finding.api))}</td><td>{version}</td>"
        f"<td>{served}</td><td>{escape(finding.cause.value)}</td><td class='number'>{use.count:,}</td>"
        f"<td>{_when(use.first)}</td><td>{_when(use.last)}</td><td>{_evidence(use.places)}</td></tr>"
        for version, use in finding.versions.items()
    )


def _evidence(places: Iterable[Place]) -> str:
    return "<br>".join(f"<code>{escape(place.file)}</code> at byte {place.position:,}" for place in places)


def _versions(usage: Usage) -> str:
    rows = "".join(
        f"<tr><td>{escape(api_name(api))}</td><td>"
        + ", ".join(f"v{version} ({use.count:,})" for version, use in sorted(versions.items()))
        + "</td></tr>"
        for api, versions in sorted(usage.apis.items())
    )
    return (
        "<h3>What it speaks</h3><div class='wide'><table><thead><tr><th>API</th><th>versions (requests)</th></tr>"
        f"</thead><tbody>{rows}</tbody></table></div>"
    )


def _timeline(census: Census) -> str:
    minutes = [minute for versions in census.timeline.values() for counts in versions.values() for minute in counts]
    if not minutes:
        return ""
    first, last = min(minutes), max(minutes)
    step = max(1, -(-(last - first + 1) // _BARS))
    figures = [_figure(api, versions, first, last, step) for api, versions in sorted(census.timeline.items())]
    return "<h2>Versions in use over time</h2>" + "".join(figures)


def _figure(api: int, versions: dict[int, dict[int, int]], first: int, last: int, step: int) -> str:
    """Stacked bars: requests in each span of `step` minutes, a colour for each version."""
    bins: list[Counter[int]] = [Counter() for _ in range((last - first) // step + 1)]
    for version, counts in versions.items():
        for minute, count in counts.items():
            bins[(minute - first) // step][version] += count
    highest = max(sum(found.values()) for found in bins)
    width = 720 / len(bins)
    bars = []
    for at, found in enumerate(bins):
        top = 100.0
        for version, count in sorted(found.items()):
            height = 90 * count / highest
            top -= height
            start = _when((first + at * step) * MINUTE)
            bars.append(
                f"<rect x='{at * width:.1f}' y='{top:.1f}' width='{max(width - 1, 0.5):.1f}' height='{height:.1f}' "
                f"fill='{_colour(version)}'><title>v{version}: {count:,} from {start}</title></rect>"
            )
    keys = "".join(
        f"<i class='key' style='background:{_colour(version)}'></i>v{version} ({sum(counts.values()):,})"
        for version, counts in sorted(versions.items())
    )
    name = escape(api_name(api))
    return (
        f"<figure><figcaption><b>{name}</b>{keys}<br><span class='quiet'>up to {highest:,} in {_minutes(step)}, "
        f"{_when(first * MINUTE)} to {_when((last + 1) * MINUTE)}</span></figcaption>"
        f"<svg viewBox='0 0 720 101' role='img' aria-label='{name}: requests by version over time'>{''.join(bars)}"
        "<line x1='0' y1='100.5' x2='720' y2='100.5' stroke='#a0aec0'/></svg></figure>"
    )


def _colour(version: int) -> str:
    return _COLOURS[version % len(_COLOURS)]


def _minutes(count: int) -> str:
    return "a minute" if count == 1 else f"{count} minutes"


def _losses(losses: Losses) -> str:
    if not losses.counts:
        return ""
    rows = "".join(
        f"<tr><td>{escape(reason)}</td><td class='number'>{count:,}</td>"
        f"<td>{_evidence([losses.first[reason]])}</td></tr>"
        for reason, count in losses.counts.most_common()
    )
    return (
        "<h2>What was not understood</h2><div class='wide'><table><thead><tr><th>what</th>"
        f"<th class='number'>how often</th><th>first</th></tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _when(time: int) -> str:
    if time < 0:
        return "unknown"
    return f"{datetime.fromtimestamp(time // 1_000_000, UTC):%Y-%m-%d %H:%M}"
