"""What a browser makes of a page, and whether its colours can be told apart."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

CHROMIUM = shutil.which("chromium")
NO_CHROMIUM = "chromium is not on the PATH"


def browse(*options: str, at: Path) -> str:
    """Opens `at/frame.html`, and gives what the browser prints."""
    quiet = ("--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={at / 'profile'}")
    command = [CHROMIUM or "", *quiet, *options, f"file://{at / 'frame.html'}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def measure(page: Path, width: int, script: str) -> str:
    """What an expression of JavaScript says of a page in a frame that wide; `page` is its document."""
    measured = f"const page = f.contentDocument; document.body.dataset.found = {script}"
    frame = f"<iframe id=f src={page.name} width={width} height=800></iframe><script>f.onload = () => {{ {measured} }}"
    (page.parent / "frame.html").write_text(f"{frame}</script>")
    dumped = browse("--allow-file-access-from-files", "--virtual-time-budget=5000", "--dump-dom", at=page.parent)
    found = re.search(r'data-found="([^"]*)"', dumped)
    assert found is not None, dumped[-500:]
    return found[1]


def contrast(one: str, other: str) -> float:
    """As WCAG 2 has it, of two colours such as #fff or #0f6b3d."""

    def luminance(colour: str) -> float:
        digits = colour[1:] if len(colour) == 7 else "".join(digit * 2 for digit in colour[1:])
        channels = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
        linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def themes(*styles: str) -> list[dict[str, str]]:
    """The colours that style sheets name, {name: colour}, by light, in the dark and on paper."""
    found: list[dict[str, str]] = [{}, {}, {}]
    for style in styles:
        for theme, block in zip(found, re.findall(r":root \{(.*?)\}", style, re.DOTALL)):
            theme.update(re.findall(r"--([\w-]+): (#\w+);", block))
    return found
