"""What bench/growth.py makes of its figures: exponents, the table of docs/performance.md, the plot."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[1]
SIZES = (1, 10, 100, 1_000)


@pytest.fixture
def growing(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    from growing import fit, page, plot

    yield {"fit": fit, "page": page, "plot": plot}
    for name in [name for name in sys.modules if name.partition(".")[0] == "growing"]:
        del sys.modules[name]


def row(power: float) -> dict[str, Any]:
    """A row whose time and memory are a power of its size."""
    sizes = {
        str(size): {"a line": {"seconds": size**power, "cpu": size**power, "mib": 5.0 * size**power, "notes": {}}}
        for size in SIZES
    }
    return {"unit": "things", "sizes": sizes, "largest": SIZES[-1], "ended": ""}


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_the_exponent_is_that_of_the_power_law_and_past_one_it_is_told(growing: Any, power: float) -> None:
    found = growing["fit"].growth({size: size**power for size in SIZES}, 0.0)
    assert (round(found.exponent, 6), round(found.last, 6)) == (power, power)
    assert bool(growing["page"].steep({"things": row(power)})) == (power > 1.1)


def test_what_is_too_little_to_be_told_from_nothing_has_no_exponent(growing: Any) -> None:
    assert growing["fit"].growth({1: 0.0, 1_000: 0.001}, 0.002) == (None, None)
    assert growing["fit"].growth({10: 5.0}, 0.0) == (None, None)


def test_the_table_goes_between_the_markers_and_the_plot_beside_the_page(growing: Any, tmp_path: Path) -> None:
    page = growing["page"]
    path = tmp_path / "performance.md"
    path.write_text(f"before\n\n{page.BEGIN}\nold\n{page.END}\n\nafter\n")
    page.write(path, {"things": row(1.0)})
    text = path.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\n\nafter\n")
    assert "old" not in text
    assert "| things | 1 to 1,000 | a line | 1.0 s to 1,000 s | 1.00, 1.00 |" in text
    root = ElementTree.parse(tmp_path / page.PICTURE).getroot()
    assert root.tag.endswith("svg")
    assert "prefers-color-scheme: dark" in "".join(root.itertext())


def test_a_page_without_markers_is_left_alone(growing: Any, tmp_path: Path) -> None:
    path = tmp_path / "performance.md"
    path.write_text("nothing here\n")
    with pytest.raises(SystemExit, match="no markers"):
        growing["page"].write(path, {})
    assert path.read_text() == "nothing here\n"


def test_the_page_has_what_the_kept_figures_say(growing: Any) -> None:
    kept = json.loads((ROOT / "bench" / "growth.json").read_text(encoding="utf-8"))
    text = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    assert growing["page"].table(kept) in text
    assert growing["plot"].drawn(kept) == (ROOT / "docs" / growing["page"].PICTURE).read_text(encoding="utf-8")
