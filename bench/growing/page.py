"""What is told of growth: a table in Markdown between two markers of a page, and the plot beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from growing import fit
from growing.plot import drawn

BEGIN, END = "<!-- growth: written by bench/growth.py -->", "<!-- growth: end -->"
PICTURE = Path("pictures") / "growth.svg"
LEAST = {"seconds": fit.LEAST_CPU, "cpu": fit.LEAST_CPU, "mib": fit.LEAST_MIB}


def seconds(took: float) -> str:
    """With the unit that reads best."""
    if took >= 1:
        return f"{took:,.1f} s" if took < 100 else f"{took:,.0f} s"
    return f"{took * 1e3:,.1f} ms" if took >= 1e-3 else f"{took * 1e6:,.0f} µs"


def growths(row: dict[str, Any], line: str) -> dict[str, fit.Growth]:
    """Of the wall's time, the processor's and memory."""
    return {
        what: fit.growth(fit.by_line(row["sizes"], what).get(line, {}), 0.0 if _is_per_unit(row, what) else least)
        for what, least in LEAST.items()
    }


def _is_per_unit(row: dict[str, Any], what: str) -> bool:
    """Whether figures are averages of many runs, none of which is too short then."""
    return what != "mib" and row["unit"].split()[0] in ("fields", "structs", "bytes")


def exponents(row: dict[str, Any], line: str) -> list[str]:
    """Each as the console has it."""
    names = {"seconds": "time", "cpu": "cpu", "mib": "memory"}
    return [
        f"{names[what]} {_number(found.exponent)} ({_number(found.last)})" for what, found in growths(row, line).items()
    ]


def _number(exponent: float | None) -> str:
    return "-" if exponent is None else f"{exponent:.2f}"


def steep(kept: dict[str, Any]) -> list[str]:
    """The lines whose processor time or memory grows faster than what grows."""
    found = []
    for name, row in kept.items():
        for line in fit.by_line(row["sizes"], "cpu"):
            every = growths(row, line)
            if every["cpu"].is_steep or every["mib"].is_steep:
                found.append(f"{name}, {line}: {'   '.join(exponents(row, line))}")
    return found


def table(kept: dict[str, Any]) -> str:
    """A line for each: its time, processor time and memory at the smallest and at the largest size."""
    return "\n".join(_lines(kept))


def _lines(kept: dict[str, Any]) -> Iterator[str]:
    yield "| what grows | sizes | line | time | its exponent, last step | processor's | memory | its exponent |"
    yield "|---|---|---|---|---|---|---|---|"
    for row in kept.values():
        sizes = sorted(map(int, row["sizes"]))
        if not sizes:
            yield f"| {row['unit']} | none: {row['ended']} | | | | | | |"
            continue
        reached = f"{sizes[0]:,} to {sizes[-1]:,}" + (f" ({row['ended']})" if row["ended"] else "")
        for number, (line, taken) in enumerate(fit.by_line(row["sizes"], "seconds").items()):
            memory = fit.by_line(row["sizes"], "mib")[line]
            at = [size for size in sizes if size in taken]
            found = growths(row, line)
            cells = [
                row["unit"] if not number else "",
                reached if not number else "",
                line,
                f"{seconds(taken[at[0]])} to {seconds(taken[at[-1]])}",
                f"{_number(found['seconds'].exponent)}, {_number(found['seconds'].last)}",
                f"{_number(found['cpu'].exponent)}, {_number(found['cpu'].last)}",
                f"{memory[at[0]]:,.0f} to {memory[at[-1]]:,.0f} MiB",
                f"{_number(found['mib'].exponent)}, {_number(found['mib'].last)}",
            ]
            yield f"| {' | '.join(cells)} |"


def write(path: Path, kept: dict[str, Any]) -> None:
    """The table into the page, and the plot beside it."""
    text = path.read_text(encoding="utf-8")
    before, found, rest = text.partition(BEGIN)
    _, closed, after = rest.partition(END)
    if not found or not closed:
        raise SystemExit(f"{path} has no markers: {BEGIN} and {END}")
    path.write_text(f"{before}{BEGIN}\n\n{table(kept)}\n\n{END}{after}", encoding="utf-8")
    picture = path.parent / PICTURE
    picture.parent.mkdir(exist_ok=True)
    picture.write_text(drawn(kept), encoding="utf-8")
