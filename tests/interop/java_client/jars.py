"""Prints the class path of a published Kafka client, or with `tools` that of the command line tools."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from kafka_jars import MavenError, classpath, kafka


def main(arguments: Sequence[str]) -> int:
    """`jars.py RELEASE client|tools`; 1 with the reason on the error output if Maven cannot fetch them."""
    release, what = arguments
    folder, modules = {
        "client": (f"client-{release}", ["kafka-clients"]),
        "tools": (f"broker-and-tools-{release}", ["kafka_2.13", "kafka-tools"]),
    }[what]
    try:
        print(":".join(map(str, classpath(folder, [kafka(module, release) for module in modules], []))))
    except MavenError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
