"""Draws the pictures of README into docs/pictures/.

    python scripts/pictures.py                       # the annotated bytes and the report of an audit
    python scripts/pictures.py --landed out/_report.html   # the report of the landing that `make run` left

The annotated bytes are drawn here, letter by letter; reports are photographed in a browser (chromium on the PATH).
"""

from __future__ import annotations

import argparse
import contextlib
import io
import shutil
import subprocess
import sys
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory

from tagwire import messages
from tagwire.capture import Census, Endpoint, Losses, Observation, Outcome, Place, judge
from tagwire.capture.report import write_report
from tagwire.cli import main as tagwire

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
DECODED = ("MetadataRequest", "--version", "9", "--hex", "0208666c69676874730000000000")

LETTER, LINE, MARGIN = 7.8, 19, 18  # pixels, of a monospaced font of 13
INK, QUIET, GROUND = "#e6ebf1", "#8fa1b5", "#0f141a"

# Client id, its software, and what it asks: each API with the version of it.
CLIENTS = {
    "billing-export": ("", "", {"Produce": 2, "Metadata": 1}),
    "metrics-agent": ("", "", {"Fetch": 4, "JoinGroup": 1, "OffsetCommit": 2}),
    "orders": ("apache-kafka-java", "3.6.1", {"Produce": 9, "Metadata": 12, "ApiVersions": 3}),
    "search-indexer": ("librdkafka", "2.5.0", {"Fetch": 11, "JoinGroup": 5, "ApiVersions": 3}),
}


def annotated() -> str:
    """The bytes of a message with what each means, as SVG."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        code = tagwire(["decode", *DECODED, "--annotate"])
    if code:
        sys.exit(code)
    lines = [f"$ tagwire decode {' '.join(DECODED)} --annotate", "", *said.getvalue().splitlines()]
    width, height = round(max(map(len, lines)) * LETTER + 2 * MARGIN), len(lines) * LINE + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f"<title>{escape(lines[0][2:])}</title>",
        f'<rect width="{width}" height="{height}" rx="8" fill="{GROUND}"/>',
        '<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace" font-size="13">',
    ]
    for number, line in enumerate(lines):
        colour = QUIET if number in (0, 2) else INK
        if line:
            at = f'x="{MARGIN}" y="{MARGIN + (number + 1) * LINE - 5}" textLength="{round(len(line) * LETTER)}"'
            parts.append(f'<text {at} fill="{colour}" xml:space="preserve">{escape(line)}</text>')
    return "\n".join([*parts, "</g>", "</svg>", ""])


def write_audit(path: Path) -> None:
    """The report of an audit, of clients that are made up."""
    census = Census()
    for minute in range(60):
        for at, (client, (software, version, asked)) in enumerate(CLIENTS.items()):
            for api, api_version in asked.items():
                census.add(
                    Observation(
                        time=1_760_000_000_000_000 + minute * 60_000_000,
                        client=Endpoint(f"10.0.0.{7 + at}", 50_000 + at),
                        broker=Endpoint("10.0.0.1", 9092),
                        client_id=client,
                        software_name=software,
                        software_version=version,
                        principal=f"User:{client.partition('-')[0]}",
                        listener="",
                        api_key=getattr(messages, f"{api}Request").spec.api_key,
                        api_version=api_version,
                        place=Place("kafka-request.log", minute * 1700),
                    )
                )
    judged = [(usage, [judge(usage, target) for target in ("3.9", "4.0", "4.4")]) for usage in census.usages()]
    judged.sort(key=lambda row: list(Outcome).index(row[1][-1].outcome), reverse=True)
    write_report(path, census, judged, Losses(), 1)


def photograph(page: Path, picture: Path, height: int) -> None:
    """A page as it stands in a browser's window of 1280 pixels.

    Raises:
        SystemExit: there is no chromium.
    """
    chromium = shutil.which("chromium") or sys.exit("pictures: chromium is not on the PATH")
    with TemporaryDirectory() as profile:
        options = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}")
        command = [
            chromium,
            *options,
            f"--window-size=1280,{height}",
            f"--screenshot={picture}",
            page.absolute().as_uri(),
        ]
        subprocess.run(command, check=True, capture_output=True)
    print(f"{picture} ({picture.stat().st_size / 1e3:.0f} kB)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--landed", type=Path, metavar="PAGE", help="the report.html of a landing; nothing else is drawn"
    )
    landed = parser.parse_args().landed
    PICTURES.mkdir(exist_ok=True)
    if landed:
        # Where the table is on this machine is nobody's concern: its directory is told as the user named it.
        home = landed.absolute().parent
        with TemporaryDirectory() as directory:
            page = Path(directory, "report.html")
            page.write_text(landed.read_text("utf-8").replace(str(home), home.name), "utf-8")
            photograph(page, PICTURES / "report.png", 900)
        return
    (PICTURES / "annotated.svg").write_text(annotated(), encoding="utf-8")
    with TemporaryDirectory() as directory:
        page = Path(directory, "report.html")
        write_audit(page)
        photograph(page, PICTURES / "audit.png", 690)


if __name__ == "__main__":
    main()
