"""A point of time as a person says it, in whichever option takes one.

    2013-07-04    2013-07-04T06:00    2013-07-04T08:00+02:00    @1372917600000    -5m    -1h30m    now

ISO 8601, in UTC where it says no zone; `@` before milliseconds since 1970; so long ago, in weeks, days, hours, minutes
and seconds; now.
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta

FORMS = "a time in UTC such as 2013-07-04 or 2013-07-04T06:00, @MILLISECONDS, -5m, -2h or now"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_UNITS = {"w": "weeks", "d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
_AGO = re.compile("-" + "".join(f"(?:(?P<{name}>[0-9]{{1,9}}){unit})?" for unit, name in _UNITS.items()), re.ASCII)
_EXACT = re.compile(r"@([0-9]{1,18})", re.ASCII)


def milliseconds(text: str, now: float | None = None) -> int | None:
    """Milliseconds since 1970 UTC, 0 for what was before; None where `text` is no time.

    Args:
        now: seconds since 1970, for times that are said from now; None takes the clock's.
    """
    if exact := _EXACT.fullmatch(text):
        return int(exact[1])
    ago = timedelta() if text == "now" else _ago(text)
    if ago is not None:
        return max(int((time.time() if now is None else now) * 1000) - ago // _MILLISECOND, 0)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at
    # Below 0 the protocol's numbers mean other things, and no record is that old.
    return max((at - _EPOCH) // _MILLISECOND, 0)


def _ago(text: str) -> timedelta | None:
    match = _AGO.fullmatch(text)
    given = {name: int(count) for name, count in match.groupdict().items() if count} if match else {}
    try:
        return timedelta(**given) if given else None
    except OverflowError:
        return None
