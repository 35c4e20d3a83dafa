"""Runs a command while a broker of ours is running: `python with_broker.py [--partitions N] -- COMMAND ...`.

The command finds the broker by the environment variable BOOTSTRAP; TLS_BOOTSTRAP, SASL_BOOTSTRAP, SASL_TLS_BOOTSTRAP
and MUTUAL_TLS_BOOTSTRAP are its guarded listeners, CA_FILE, CLIENT_FILE, SASL_USER and SASL_PASSWORD to come in by.
The last line that is printed, `broker-log`, is about the broker: it fails when the broker met an error that it did not
expect.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from broker_process import PASSWORD, USER, BrokerProcess

sys.path.append(str(Path(__file__).resolve().parent.parent))

from certificates import Certificates

FAILED: Final = 3


def main() -> int:
    """Runs the command; its exit code, or FAILED if the broker failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=1, help="of a topic that is created without saying")
    parser.add_argument("command", nargs="+")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tagwire-interop-") as name:
        broker = BrokerProcess(Path(name), chosen.partitions)
        certificates = Certificates.make(broker.folder)
        with broker.running():
            done = subprocess.run(chosen.command, env={**os.environ, **_environment(broker, certificates)})
        faults = broker.unexpected()
        print(f"FAIL broker-log: {faults[0]}" if faults else "ok broker-log", flush=True)
        if faults:
            print((broker.folder / "log").read_text(errors="replace"), file=sys.stderr)
    return done.returncode or FAILED * bool(faults)


def _environment(broker: BrokerProcess, certificates: Certificates) -> Mapping[str, str]:
    addresses = {f"{kind}_BOOTSTRAP": address for kind, address in broker.addresses.items()}
    return {
        **addresses,
        "BOOTSTRAP": addresses["PLAIN_BOOTSTRAP"],
        "CA_FILE": str(certificates.authority),
        "CLIENT_FILE": str(certificates.client),
        "SASL_USER": USER,
        "SASL_PASSWORD": PASSWORD,
    }


if __name__ == "__main__":
    sys.exit(main())
