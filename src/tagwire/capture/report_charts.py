"""Versions in use over time, as drawings in a page: bars by span of time, a colour for each version of an API."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Final

from tagwire.capture.census import MINUTE, Census
from tagwire.escaping import html_text
from tagwire.kernel.packets import LAST_SECOND
from tagwire.rpc.names import api_name
from tagwire.spec.releases import ApiRange

_BARS: Final = 48
_WIDTH, _HEIGHT = 480, 88
_WIDEST: Final = 56
_LAST_MINUTE: Final = LAST_SECOND // 60
_SERVED, _GONE = 6, 4  # how many shades there are of each

Minutes = Mapping[int, int]


def charts(census: Census, apis: Collection[int], served: Mapping[int, ApiRange], release: str) -> str:
    """A drawing for each of the APIs, those first of which `release` does not serve all: that stands out.
    "" where no time is known."""
    timeline = {api: versions for api, versions in census.timeline.items() if api in apis}
    minutes = [minute for versions in timeline.values() for counts in versions.values() for minute in counts]
    if not minutes:
        return ""
    first, last = min(minutes), max(minutes)
    step = max(1, -(-(last - first + 1) // _BARS))
    gone = {api: not all(_serves(served.get(api), version) for version in timeline[api]) for api in timeline}
    drawn = [
        _figure(api, timeline[api], served.get(api), first, last, step)
        for api in sorted(timeline, key=lambda api: (not gone[api], api))
    ]
    return (
        "<section><h2>Versions in use over time</h2>"
        f"<p class='quiet'>Requests in {_minutes(step)}, but for those of followers. Darker is newer; what Kafka "
        f"{html_text(release)} does not serve is red, and marked ✗.</p>"
        f"<div class='charts'>{''.join(drawn)}</div></section>"
    )


def _figure(
    api: int, versions: Mapping[int, Minutes], served: ApiRange | None, first: int, last: int, step: int
) -> str:
    bins: list[Counter[int]] = [Counter() for _ in range((last - first) // step + 1)]
    for version, counts in versions.items():
        for minute, count in counts.items():
            bins[(minute - first) // step][version] += count
    shades = _shades(sorted(versions), served)
    name, highest = html_text(api_name(api)), max(sum(found.values()) for found in bins)
    keys = "".join(
        f"<span class='{'' if _serves(served, version) else 'breaks'}'><i class='{shades[version]}'></i>"
        f"{'' if _serves(served, version) else '✗ '}v{version}: {sum(counts.values()):,}</span>"
        for version, counts in sorted(versions.items())
    )
    return (
        f"<figure><figcaption>{name}<span class='quiet'>up to {highest:,}</span></figcaption>"
        f"<svg viewBox='0 0 {_WIDTH} {_HEIGHT}' preserveAspectRatio='none' role='img' "
        f"aria-label='{name}: requests by version over time'>{_bars(bins, highest, shades, first, step)}"
        f"<line x1='0' y1='{_HEIGHT - 0.5}' x2='{_WIDTH}' y2='{_HEIGHT - 0.5}'/></svg>"
        f"<div class='axis'><span>{_when(first)}</span><span>{_when(min(last + 1, _LAST_MINUTE))}</span></div>"
        f"<div class='keys'>{keys}</div></figure>"
    )


def _bars(bins: list[Counter[int]], highest: int, shades: Mapping[int, str], first: int, step: int) -> str:
    room = _WIDTH / len(bins)
    width = min(room * 0.85, _WIDEST)
    drawn = []
    for at, found in enumerate(bins):
        left, bottom = at * room, float(_HEIGHT - 1)
        for version, count in sorted(found.items()):
            height = (_HEIGHT - 4) * count / highest
            bottom -= height
            said = f"v{version}: {count:,} in {_minutes(step)} from {_when(first + at * step)}"
            drawn.append(
                f"<rect class='{shades[version]}' x='{left:.1f}' y='{bottom:.1f}' width='{width:.1f}' "
                f"height='{height:.1f}'><title>{said}</title></rect>"
            )
    return "".join(drawn)


def _shades(versions: list[int], served: ApiRange | None) -> dict[int, str]:
    """Each version's class: darker is newer, and red what is not served."""
    kept = [version for version in versions if _serves(served, version)]
    gone = [version for version in versions if version not in kept]
    return {
        version: f"{letter}{_shade(at, len(several), shades)}"
        for letter, several, shades in (("s", kept, _SERVED), ("g", gone, _GONE))
        for at, version in enumerate(several)
    }


def _serves(served: ApiRange | None, version: int) -> bool:
    return served is not None and version in served.versions


def _shade(at: int, count: int, shades: int) -> int:
    """Spread over the shades; the middle one for a version that is alone."""
    return shades // 2 if count == 1 else at * (shades - 1) // (count - 1)


def _minutes(count: int) -> str:
    return "a minute" if count == 1 else f"{count} minutes"


def _when(minute: int) -> str:
    return f"{datetime.fromtimestamp(minute * MINUTE // 1_000_000, UTC):%Y-%m-%d %H:%M}"
