"""What to say where evidence tells of no request: what it is instead, and how to get some that does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tagwire.capture.connections import TLS
from tagwire.capture.files import kind_of
from tagwire.capture.observation import Losses
from tagwire.capture.opening import STDIN
from tagwire.errors import CaptureError
from tagwire.records.files.opening import strange_kind

_REASONS: Final = 2

SWITCH_ON: Final = (
    "a broker logs requests once its logger kafka.request.logger is at DEBUG: tagwire configs alter "
    "broker_logger/BROKER_ID --set kafka.request.logger=DEBUG --bootstrap HOST:PORT; or in its log4j2.yaml "
    "`- name: kafka.request.logger` with `level: DEBUG`, in log4j.properties "
    "log4j.logger.kafka.request.logger=DEBUG, requestAppender"
)


def nothing_seen(files: Sequence[Path], losses: Losses) -> CaptureError:
    """The error about evidence that tells of no request.

    Args:
        files: what was read.
        losses: what of it was not understood.
    """
    instead = ", ".join(f"{count} x {reason}" for reason, count in losses.counts.most_common(_REASONS))
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    what = f"{files[0]}{more}: no request in it{f' ({instead})' if instead else ''}"
    if TLS in losses.counts:
        return CaptureError(
            f"{what}, for its connections are under TLS, which cannot be read. Take the request log: {SWITCH_ON}"
        )
    if any(map(_is_packets, files)):
        return CaptureError(
            f"{what}. Capture the port where clients reach the broker, in plain text, while they do: tcpdump -i any "
            f"-w capture.pcap port 9092. Or take the request log: {SWITCH_ON}"
        )
    return CaptureError(f"{what}; {SWITCH_ON}")


def brokers_alone(files: Sequence[Path], count: int) -> CaptureError:
    """The error about evidence that tells of no client's request.

    Args:
        files: what was read.
        count: how many brokers or controllers were seen.
    """
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    seen = (
        f"{count} that look like brokers or controllers" if count > 1 else "one that looks like a broker or controller"
    )
    return CaptureError(
        f"{files[0]}{more}: no client's request in it, only those of {seen}, which --brokers judges. Take evidence "
        "where clients reach the broker, while they do"
    )


def _is_packets(path: Path) -> bool:
    """As far as it can be looked at again."""
    return path != STDIN and strange_kind(path) is None and kind_of(path) == "packets"
