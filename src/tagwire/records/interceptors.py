"""Interceptors: functions that records pass on their way out of a producer or into an application.

An interceptor adds to records, such as a header that traces them; it never stops one. Where it raises, or gives
something else than a record, the record goes on as it was before and a warning is logged, as in Kafka's own clients.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from tagwire.records.record import Record

logger = logging.getLogger("tagwire.client")

ProducerInterceptor = Callable[[str, Record], Record | None]
"""Sees topic and record before it is encoded. It may set headers, or give another record; None is the one it saw."""

ConsumerInterceptor = Callable[[Record], Record | None]
"""Sees a record after it is decoded. It may give another record, such as `record.replace()`; None is the one it saw."""


def before_encoding(topic: str, record: Record, interceptors: Sequence[ProducerInterceptor]) -> Record:
    """What the interceptors, one after the other, make of a record for `topic`."""
    for interceptor in interceptors:
        copy = record.replace()  # what a failing interceptor has done to it is forgotten
        record = _passed(interceptor, record, copy, topic, copy)
    return record


def after_decoding(record: Record, interceptors: Sequence[ConsumerInterceptor]) -> Record:
    """What the interceptors, one after the other, make of a record that was read."""
    for interceptor in interceptors:
        record = _passed(interceptor, record, record, record)
    return record


def _passed(interceptor: Callable[..., object], before: Record, seen: Record, *arguments: object) -> Record:
    try:
        after = interceptor(*arguments)
    except Exception:
        logger.warning("an interceptor, %r, raised; the record goes on as it was", interceptor, exc_info=True)
        return before
    if after is None:
        return seen
    if isinstance(after, Record):
        return after
    logger.warning(
        "an interceptor, %r, gave %s, not a record; the record goes on as it was", interceptor, type(after).__name__
    )
    return before
