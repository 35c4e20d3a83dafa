"""Who a connection is, as ACLs name it."""

from __future__ import annotations

import pytest

from tagwire.broker.authorization.access import java_host


@pytest.mark.parametrize(
    ("address", "written"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("2001:db8::ff00:42", "2001:db8:0:0:0:0:ff00:42"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("somewhere", "somewhere"),
    ],
)
def test_hosts_are_written_as_java_writes_them(address: str, written: str) -> None:
    """What ACLs of Kafka's tools hold, and Kafka compares as text."""
    assert java_host(address) == written
