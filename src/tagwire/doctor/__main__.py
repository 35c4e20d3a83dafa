"""`python -m tagwire.doctor`: the doctor where the `tagwire` command itself cannot run, for want of its packages."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from io import TextIOWrapper

from tagwire.closed_pipes import answering
from tagwire.doctor import examine
from tagwire.doctor.report import print_findings

BOOTSTRAP_SERVERS = "bootstrap.servers"
INTERRUPTED = 130  # what a shell says of a command that Ctrl-C ended


def main(arguments: Sequence[str] | None = None) -> int:
    """Examines; `arguments` None takes those of the process.

    Returns:
        0 where all is well, 1 where there is a problem, 2 where the command was misused (which argparse raises), 130
        after Ctrl-C.
    """
    parser = argparse.ArgumentParser(
        prog="python -m tagwire.doctor",
        description="Look at what tagwire stands on, and say what to do. `tagwire doctor` is the same.",
        epilog="Example: python -m tagwire.doctor kafka-1:9093 -X security.protocol=SSL -X ssl.ca.location=ca.pem",
    )
    parser.add_argument(
        "brokers", nargs="?", metavar="HOST:PORT[,HOST:PORT]", default=os.environ.get("TAGWIRE_BOOTSTRAP")
    )
    parser.add_argument("-X", metavar="KEY=VALUE", action="append", default=[], help="a property of a Kafka client")
    parser.add_argument("--spark", action="store_true", help="start Spark and read a record with it, too")
    parser.add_argument("--timeout", type=float, default=5.0, metavar="SECONDS", help="for one request to a broker")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    given = parser.parse_args(arguments)
    properties = {}
    for text in given.X:
        name, equals, value = text.partition("=")
        if not equals or not re.fullmatch(r"[\w.-]+", name):
            parser.error("-X needs KEY=VALUE")  # what was given may be a password
        properties[name] = value
    if given.brokers:
        properties[BOOTSTRAP_SERVERS] = given.brokers
    named = properties if BOOTSTRAP_SERVERS in properties else None
    found = examine(named, timeout=given.timeout, with_spark=given.spark)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with answering():
            return print_findings(found, as_json=given.json)
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
