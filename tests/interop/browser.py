"""A headless Chromium that does what a reader does: opens pages, types, points, presses keys.

Speaks the DevTools protocol over two pipes, so that no port is open and no package is needed.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

from .peer import NotRunError

SECONDS: Final = 60


class Browser:
    """One page of a browser.

    Args:
        profile: an empty directory for what the browser keeps.

    Attributes:
        requested: the addresses of everything that pages asked for, since `open` was called last.
        complaints: errors that scripts raised or wrote to the console, since then.

    Raises:
        NotRunError: there is no Chromium.
    """

    def __init__(self, profile: Path) -> None:
        chromium = shutil.which("chromium")
        if chromium is None:
            raise NotRunError("chromium is not on the PATH")
        self.requested: list[str] = []
        self.complaints: list[str] = []
        self._number = 0
        self._unread = b""
        take_in, self._out = os.pipe()
        self._in, give_out = os.pipe()
        command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
        command += [f"--user-data-dir={profile}", "--window-size=1280,900", "about:blank"]
        shell = f'exec 3<&{take_in} 4>&{give_out}; exec "$@"'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "bash", *command],
            pass_fds=(take_in, give_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(take_in)
        os.close(give_out)
        self._session: str | None = None
        target = next(one for one in self.ask("Target.getTargets")["targetInfos"] if one["type"] == "page")
        attached = self.ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.ask(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.terminate()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)

    # -- the protocol

    def ask(self, method: str, **given: Any) -> dict[str, Any]:
        """One command, and what came of it."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": given}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + SECONDS
        for said in self._messages(until):
            if said.get("id") == self._number:
                assert "error" not in said, (method, said["error"])
                return dict(said["result"])
            self._note(said)
        raise AssertionError(f"{method}: nothing came back in {SECONDS} seconds")

    def _messages(self, until: float) -> Iterator[dict[str, Any]]:
        while True:
            while b"\0" in self._unread:
                one, _, self._unread = self._unread.partition(b"\0")
                yield json.loads(one)
            if not select.select([self._in], [], [], max(0, until - time.monotonic()))[0]:
                return
            read = os.read(self._in, 1 << 20)
            assert read, "the browser has ended"
            self._unread += read

    def _note(self, event: dict[str, Any]) -> None:
        given = event.get("params", {})
        if event["method"] == "Network.requestWillBeSent":
            self.requested.append(given["request"]["url"])
        elif event["method"] == "Runtime.exceptionThrown":
            details = given["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description", details["text"]))
        elif event["method"] == "Log.entryAdded" and given["entry"]["level"] == "error":
            self.complaints.append(given["entry"]["text"])

    # -- what a reader does

    def open(self, address: str) -> None:
        """Goes to a page, and waits until it and its scripts are there."""
        self.requested.clear()
        self.complaints.clear()
        self.ask("Page.navigate", url="about:blank")
        self.ask("Page.navigate", url=address)
        self.wait(
            f"location.href.startsWith({json.dumps(address.partition('#')[0])}) && document.readyState == 'complete'"
        )

    def tell(self, expression: str) -> Any:
        """What an expression of JavaScript has for a value, once it is there."""
        said = self.ask("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in said, said["exceptionDetails"]
        return said["result"].get("value")

    def wait(self, expression: str, seconds: float = SECONDS) -> Any:
        """Waits until an expression is true."""
        until = time.monotonic() + seconds
        while not (found := self.tell(f"Boolean({expression})")):
            assert time.monotonic() < until, f"not true in {seconds} seconds: {expression}"
            time.sleep(0.05)
        return found

    def press(self, key: str, code: str = "", text: str = "") -> None:
        known = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowRight": 39, "ArrowLeft": 37}
        for kind in ("keyDown", "keyUp"):
            given = {"type": kind, "key": key, "code": code or key, "windowsVirtualKeyCode": known.get(key, 0)}
            if text and kind == "keyDown":
                given["text"] = text
            self.ask("Input.dispatchKeyEvent", **given)

    def point(self, selector: str) -> None:
        """Moves the pointer onto an element."""
        box = self.tell(
            f"(() => {{ const one = document.querySelector({json.dumps(selector)});"
            " one.scrollIntoView({block: 'center'}); const box = one.getClientRects()[0];"
            " return [box.x + box.width / 2, box.y + box.height / 2] })()"
        )
        self.ask("Input.dispatchMouseEvent", type="mouseMoved", x=box[0], y=box[1])

    def resize(self, width: int, height: int = 900) -> None:
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    @contextmanager
    def dark(self) -> Iterator[None]:
        """As where the reader's system is dark."""
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        yield
        self.ask("Emulation.setEmulatedMedia", features=[])

    def photograph(self, picture: Path) -> None:
        picture.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot")["data"]))
