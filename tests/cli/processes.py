"""The command in a process of its own, for what only a process can show."""

from __future__ import annotations

import signal
import subprocess
import sys
from functools import partial
from typing import Any


def start(*arguments: object, **options: Any) -> subprocess.Popen[Any]:
    """Starts `tagwire` with these arguments; its output goes into pipes.

    Ctrl-C works in it even where the tests run in the background of a shell, which ignores it for all its children.
    """
    return subprocess.Popen(
        [sys.executable, "-m", "tagwire", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        **options,
    )
