"""An S3 server on loopback, moto's, which serves AWS Glue as well; and what is fetched with it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .python_packages import fetched

SECRET = "the-secret-access-key"
KEY = "the-access-key-id"
REGION = "us-east-1"
BUCKET = "lake"
STARTS = 240


def packages() -> Path:
    """A directory for PYTHONPATH with moto and boto3. Raises NotRunError."""
    return fetched("moto-5.2.5", ["moto[server]==5.2.5"])


@contextmanager
def s3_server() -> Iterator[str]:
    """The URL of a server that has an empty bucket. Raises NotRunError."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    environment = {**os.environ, "PYTHONPATH": str(packages())}
    url = f"http://127.0.0.1:{port}"
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            deadline = time.monotonic() + STARTS
            while time.monotonic() < deadline:
                with suppress(OSError):
                    urllib.request.urlopen(urllib.request.Request(f"{url}/{BUCKET}", method="PUT"), timeout=5).close()
                    break
                time.sleep(0.1)
            yield url
        finally:
            server.terminate()
