"""The tables of docs/reliability.md that are made from the judge: `python -m tests.simulation.reliability_page`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

from .judge import RULES

PAGE: Final = Path(__file__).parents[2] / "docs" / "reliability.md"
BEGIN: Final = "<!-- promises: python -m tests.simulation.reliability_page -->\n"
END: Final = "<!-- end of promises -->\n"


def promises() -> str:
    """A row for each rule of the judge."""
    lines = ["| promised | kept by | judged by | as |", "|---|---|---|---|"]
    for rule in RULES:
        names = ", ".join(f"`{name}`" for name in rule.names)
        lines.append(f"| [{rule.promise}]({rule.document}) | {rule.mechanism} | `{rule.judge}` | {names} |")
    return "".join(f"{line}\n" for line in lines)


def page_with(table: str) -> str:
    """The page as it is to be."""
    text = PAGE.read_text("utf-8")
    return re.sub(f"(?<={re.escape(BEGIN)}).*?(?={re.escape(END)})", lambda _: table, text, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(page_with(promises()), "utf-8")
    sys.exit(0)
