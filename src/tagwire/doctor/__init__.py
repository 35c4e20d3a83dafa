"""`tagwire doctor`: looks at what everything else here stands on, and says what to do.

It runs where hardly anything else does: each check is made by itself, and what one needs is imported inside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tagwire.doctor.findings import OK, PROBLEM, WARNING, Finding, guarded

__all__ = ["OK", "PROBLEM", "WARNING", "Finding", "examine"]


def examine(
    properties: Mapping[str, str] | None = None, *, timeout: float = 5.0, with_spark: bool = False
) -> Iterator[Finding]:
    """Everything that is found, as it is found.

    Args:
        properties: a client's, with `bootstrap.servers`; None looks at no broker.
        timeout: seconds that one request to a broker may take.
        with_spark: also start Spark, and read a record with it.
    """
    from tagwire.doctor import engine, machine

    yield from guarded("python", machine.python)
    yield from guarded("kernels", machine.kernels)
    yield from guarded("packages", machine.packages)
    yield from guarded("disk", machine.disk)
    yield from guarded("java", engine.java)
    yield from guarded("pyspark", engine.pyspark)
    yield from guarded("workers", engine.workers)
    yield from guarded("formats", engine.formats)
    if with_spark:
        yield from guarded("spark", engine.read)

    def brokers() -> Iterator[Finding]:
        from tagwire.doctor.brokers import look

        yield from look(properties, timeout)

    yield from guarded("brokers", brokers)
