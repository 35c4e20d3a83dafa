"""README as it stands on a package index, where a path relative to it leads nowhere; and its pictures."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pictures
import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
URLS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
HOME = URLS["Homepage"]
RAW = HOME.replace("https://github.com/", "https://raw.githubusercontent.com/") + "/main/"
TEXT = re.sub(r"```.*?```|`[^`\n]*`", "", README, flags=re.DOTALL)
DEFINED = dict(re.findall(r"^\[([^\]]+)\]: (\S+)$", README, re.MULTILINE))


def in_the_tree(url: str) -> Path:
    """Where in the tree a URL of the project's leads to."""
    for prefix in (f"{HOME}/blob/main/", f"{HOME}/tree/main/", RAW):
        if url.startswith(prefix):
            return ROOT / url.removeprefix(prefix)
    raise AssertionError(f"{url} is not of {HOME}")


def test_no_link_of_the_readme_is_relative() -> None:
    targets = [*re.findall(r"\]\(([^)]*)\)", TEXT), *DEFINED.values()]
    assert targets
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []


def test_every_link_of_the_readme_leads_to_a_file_of_the_tree() -> None:
    used = {name for pair in re.findall(r"\[([^\]\[]+)\]\[([^\]\[]+)\]", TEXT) for name in pair[1:]}
    used |= set(re.findall(r"\[((?:docs/|[A-Z]+\.md)[^\]]*)\](?![\[:(])", TEXT))
    assert used - set(DEFINED) == set()
    assert set(DEFINED) - used == set()
    for name, url in DEFINED.items():
        assert in_the_tree(url) == ROOT / name
        assert in_the_tree(url).is_file(), url


@pytest.mark.parametrize("name", ["Documentation", "Changelog"])
def test_the_urls_of_the_project_lead_to_what_is_there(name: str) -> None:
    assert in_the_tree(URLS[name]).exists()


def test_the_annotated_bytes_are_what_the_command_prints_now() -> None:
    """`python scripts/pictures.py` draws them anew."""
    assert (pictures.PICTURES / "annotated.svg").read_text(encoding="utf-8") == pictures.annotated()


def test_the_photographed_reports_are_made_of_what_can_be_read_now(tmp_path: Path) -> None:
    pictures.write_audit(tmp_path / "report.html")
    assert "1 of 4 clients breaks on Kafka 4.4" in re.sub(r"<[^>]*>", "", (tmp_path / "report.html").read_text())
    for name in DEFINED:
        if name.endswith(".png"):
            assert (ROOT / name).read_bytes()[:4] == b"\x89PNG"
            assert (ROOT / name).stat().st_size < 300_000
