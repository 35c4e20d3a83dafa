"""The standard library as it was before `install` replaced parts of it."""

from __future__ import annotations

import _thread
import os
import random
import selectors
import socket
import threading
import time

allocate_lock = _thread.allocate_lock
start_new_thread = _thread.start_new_thread
get_ident = _thread.get_ident

Thread = threading.Thread
current_thread = threading.current_thread

sleep = time.sleep
clocks = {name: getattr(time, name) for name in ("time", "monotonic", "perf_counter")}
clocks |= {f"{name}_ns": getattr(time, f"{name}_ns") for name in clocks}

urandom = os.urandom
Random = random.Random
PollSelector = selectors.PollSelector
socket_module = socket
