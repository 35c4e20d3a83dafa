"""The process that seeds grow from: `python -m tests.simulation.stem MODULE SECONDS`, which `pool` starts.

It replaces the standard library's clocks, locks and sockets, imports everything once, and then forks for every order:
each seed starts from the same memory, whichever seeds ran before, and one that crashes or hangs takes nobody with it.

Orders are lines of JSON on standard input. For each, standard output has a line with the exit status of the process
that ran it and the size of what it answered, and then that.
"""

from __future__ import annotations

import faulthandler
import gc
import importlib
import json
import os
import resource
import signal
import sys
import traceback
from math import ceil
from typing import Final

WAITING: Final = 5


def serve(module: str, seconds: float) -> None:
    """Until there are no more orders. Whoever needs more than `seconds` says where it stands, and ends."""
    program = importlib.import_module(module)
    program.prepare()
    gc.collect()
    gc.freeze()
    # When the collector runs depends on all that was allocated before, and on which Python: no seed decides it.
    gc.disable()
    while order := sys.stdin.buffer.readline():
        reading, writing = os.pipe()
        process = os.fork()
        if process == 0:
            os.close(reading)
            _limit(seconds)
            _run(program, order, writing)
        os.close(writing)
        answer = _everything(reading)
        _, status = os.waitpid(process, 0)
        ended = {"status": os.waitstatus_to_exitcode(status), "size": len(answer)}
        sys.stdout.buffer.write(json.dumps(ended).encode() + b"\n" + answer)
        sys.stdout.buffer.flush()


def _limit(seconds: float) -> None:
    """Of a processor's time; of real time, in which the machine may have more to do, several times as much."""
    faulthandler.register(signal.SIGXCPU, all_threads=True, chain=True)
    resource.setrlimit(resource.RLIMIT_CPU, (ceil(seconds), resource.RLIM_INFINITY))
    faulthandler.dump_traceback_later(WAITING * seconds, exit=True)


def _run(program: object, order: bytes, writing: int) -> None:
    status = 1
    try:
        answer = program.carry_out(**json.loads(order)).to_json().encode()
        while answer:
            answer = answer[os.write(writing, answer) :]
        status = 0
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        # Threads of the simulated world may be left, which nobody wakes again.
        os._exit(status)


def _everything(reading: int) -> bytes:
    parts = []
    while part := os.read(reading, 1 << 20):
        parts.append(part)
    os.close(reading)
    return b"".join(parts)


if __name__ == "__main__":
    serve(sys.argv[1], float(sys.argv[2]))
