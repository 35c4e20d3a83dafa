"""The plot: a small panel for each line, both axes logarithmic, each from 1 on: how many times more at how many times
the size. What grows as the size does keeps to the dotted diagonal."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape
from typing import Any

from growing import fit

PANEL_W, PANEL_H, LEFT, TOP, COLUMNS = 190, 150, 34, 34, 5
DECADES = 3.3
STYLE = """
text { font: 11px system-ui, sans-serif; fill: #333 } .name { font-weight: 600 } .small { font-size: 9px; fill: #666 }
.frame { fill: none; stroke: #999; stroke-width: .6 } .linear { stroke: #999; stroke-dasharray: 2 3; fill: none }
.time { stroke: #0969da; fill: none; stroke-width: 2 } .memory { stroke: #bc4c00; fill: none; stroke-width: 2 }
.timedot { fill: #0969da } .memorydot { fill: #bc4c00 } .time-t { fill: #0969da } .memory-t { fill: #bc4c00 }
@media (prefers-color-scheme: dark) { text { fill: #ddd } .small { fill: #aaa } .time { stroke: #58a6ff }
.memory { stroke: #f0883e } .timedot, .time-t { fill: #58a6ff } .memorydot, .memory-t { fill: #f0883e } }
"""


def drawn(kept: dict[str, Any]) -> str:
    """The picture, readable on white and on black."""
    panels = [(row, line) for row in kept.values() for line in fit.by_line(row["sizes"], "seconds")]
    width = COLUMNS * PANEL_W + 20
    height = -(-len(panels) // COLUMNS) * PANEL_H + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'role="img">',
        "<title>How cost grows when the work grows a thousandfold</title>",
        f"<style>{STYLE}</style>",
        '<text x="10" y="18"><tspan class="time-t">time</tspan>, <tspan class="memory-t">memory</tspan>: '
        "how many times more (up), at how many times the size (right), from 1 on; dotted: as the size does</text>",
    ]
    for number, (row, line) in enumerate(panels):
        x, y = 10 + number % COLUMNS * PANEL_W, 30 + number // COLUMNS * PANEL_H
        parts += _panel(x, y, row, line)
    return "\n".join([*parts, "</svg>", ""])


def _panel(x: float, y: float, row: dict[str, Any], line: str) -> Iterator[str]:
    inner_w, inner_h = PANEL_W - LEFT - 10, PANEL_H - TOP - 22
    left, top = x + 12, y + TOP
    yield f'<text class="name" x="{left}" y="{y + 14}">{escape(_short(row["unit"]))}</text>'
    yield f'<text class="small" x="{left}" y="{y + 27}">{escape(_short(line))}</text>'
    yield f'<rect class="frame" x="{left}" y="{top}" width="{inner_w}" height="{inner_h}"/>'
    yield f'<path class="linear" d="M{left} {top + inner_h}L{left + inner_w} {top}"/>'
    for what, name in (("mib", "memory"), ("seconds", "time")):
        least = fit.LEAST_MIB if what == "mib" else 1e-9
        figures = sorted(fit.by_line(row["sizes"], what)[line].items())
        first_size, first = figures[0][0], max(figures[0][1], least)
        points = []
        for size, figure in figures:
            right = math.log10(size / first_size) / DECADES
            up = min(max(math.log10(max(figure, least) / first) / DECADES, 0), 1)
            points.append((left + right * inner_w, top + inner_h - up * inner_h))
        path = "L".join(f"{a:.1f} {b:.1f}" for a, b in points)
        yield f'<path class="{name}" d="M{path}"/>'
        yield from (f'<circle class="{name}dot" cx="{a:.1f}" cy="{b:.1f}" r="2.4"/>' for a, b in points)
    sizes = sorted(map(int, row["sizes"]))
    yield f'<text class="small" x="{left}" y="{top + inner_h + 12}">{sizes[0]:,}</text>'
    if len(sizes) > 1:
        end = f'x="{left + inner_w}" y="{top + inner_h + 12}" text-anchor="end"'
        yield f'<text class="small" {end}>to {sizes[-1]:,}</text>'


def _short(text: str) -> str:
    return text if len(text) <= 27 else text[:26] + "…"
