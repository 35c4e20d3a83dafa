"""The site that `make docs` builds, as far as that can be told without building it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import site_anchors
import site_commands
import typer
from site_citations import leads_somewhere, linked, sources
from site_links import broken_links
from site_navigation import listed, with_unlisted

from tagwire.cli import app
from tagwire.reference import Shelf

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "website" / "pages"


def test_every_guide_stands_once_in_the_sites_navigation() -> None:
    guides = sorted((ROOT / "docs").glob("*.md"))
    pages = {path.name: path.read_bytes() for path in PAGES.glob("*.md")}
    named = [name for text in pages.values() for name in listed(text.decode())]
    assert len(named) == len(set(named))
    unlisted = Path("brand-new.md")
    found = with_unlisted(pages, [*guides, unlisted])
    named = [name for text in found.values() for name in listed(text.decode())]
    assert {path.stem for path in guides} | {"brand-new"} <= set(named)
    assert len(named) == len(set(named))


def test_no_page_of_the_site_has_the_name_of_a_guide() -> None:
    assert {path.name for path in PAGES.glob("*.md")} & {path.name for path in (ROOT / "docs").glob("*.md")} == set()


@pytest.mark.parametrize(
    ("link", "broken"),
    [
        ('<a href="other.html#there">', []),
        ('<a href="other.html">', []),
        ('<a href="#here">', []),
        ('<a href="https://kafka.apache.org/protocol">', []),
        ('<a href="other.html#gone">', ["page.html: other.html#gone"]),
        ('<a href="gone.html">', ["page.html: gone.html"]),
        ('<a href="#gone">', ["page.html: #gone"]),
        ('<img src="gone.png">', ["page.html: gone.png"]),
    ],
)
def test_a_link_to_a_page_or_an_anchor_that_is_not_there_is_broken(
    tmp_path: Path, link: str, broken: list[str]
) -> None:
    (tmp_path / "page.html").write_text(f'<h1 id="here">A page</h1>{link}', encoding="utf-8")
    (tmp_path / "other.html").write_text('<h2 id="there">Another</h2>', encoding="utf-8")
    assert broken_links(tmp_path) == broken


def test_every_question_leads_to_a_page_and_an_anchor_that_answer_it() -> None:
    text = (PAGES / "questions.md").read_text(encoding="utf-8")
    rows = [row for row in text.split("\n") if row.startswith("| ")][1:]
    assert len(rows) >= 10
    reference = {f"reference/{path}/index.md" for path in Shelf().paths()}
    for row in rows:
        answer = row.split(" | ")[-1]
        links = re.findall(r"\]\(([^)]+)\)", answer)
        assert links, row
        for link in links:
            page, _, anchor = link.partition("#")
            known = page in reference or any((folder / page).exists() for folder in site_anchors.FOLDERS)
            assert known, link
            assert not anchor or f"{Path(page).stem}.html#{anchor}" in site_anchors.there(), link


def test_every_path_that_the_page_about_a_new_release_names_is_there() -> None:
    text = (ROOT / "docs" / "new-release.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:src|tests|scripts)/[\w/.]+)`", text))
    assert len(named) > 15
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []
    handler = (ROOT / "src/tagwire/broker/handlers/fetch.py").read_text(encoding="utf-8")
    for stated in re.findall(r"`(@handles\([^`)]*)\)`", text):
        assert stated in handler


# Anchors --------------------------------------------------------------------------------------------------------------


def test_no_anchor_that_others_may_link_to_is_lost() -> None:
    """A heading that was renamed: `page.html#old = new` in website/anchors.txt lets the old anchor lead to it."""
    lost = [old for old, new in site_anchors.kept().items() if new not in site_anchors.there()]
    assert len(site_anchors.kept()) > 100
    assert lost == []


def test_an_anchor_that_was_renamed_leads_to_the_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_anchors, "KEPT", tmp_path / "anchors.txt")
    (tmp_path / "anchors.txt").write_text("client.html#old-name = tls-and-sasl\nclient.html#what-it-is-not\n")
    assert site_anchors.kept()["client.html#old-name"] == "client.html#tls-and-sasl"
    assert site_anchors.former("client") == {"tls-and-sasl": ["old-name"]}
    site_anchors.main()
    assert {"client.html#old-name", "client.html#what-it-is-not", "spark.html#kafka-in-spark"} <= set(
        site_anchors.kept()
    )
    assert site_anchors.former("client") == {"tls-and-sasl": ["old-name"]}


# What docstrings cite -------------------------------------------------------------------------------------------------


def docstrings() -> Iterator[tuple[str, str]]:
    """Every docstring of the source, and where it stands."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = ast.get_docstring(node) if isinstance(node, documented) else None
            if text:
                yield f"{path.relative_to(ROOT)}:{getattr(node, 'name', '')}", text


def test_every_source_of_a_docstring_is_a_link_to_a_page_a_kip_or_a_class() -> None:
    cited = [(where, source) for where, text in docstrings() for source in sources(text)]
    assert len(cited) > 50
    assert [each for each in cited if not leads_somewhere(each[1])] == []


def test_what_a_docstring_cites_is_a_link() -> None:
    text = linked("See docs/wire-format.md#primitives, KIP-511 and Kafka's KafkaApis, not KafkaApisTest.")
    assert "[wire-format#primitives](../wire-format.md#primitives)" in text
    assert re.search(r"\[KIP-511\]\(https://\S*KIP-511\S*\)", text)
    assert re.search(r"\[KafkaApis\]\(https://\S*/KafkaApis.scala\), not KafkaApisTest\.", text)
    assert re.search(
        r"\[the Avro specification, 1\.11\]\(https://\S+\)", linked("Source: the Avro specification, 1.11.")
    )
    assert re.search(r"\[SchemaId\]\(https://\S*confluentinc\S*SchemaId\)", linked("Confluent's SchemaId"))
    assert leads_somewhere('Delta\'s protocol, "Per-file Statistics"; RFC 6901 (JSON Pointer).')
    assert leads_somewhere("preadv2(2).")
    assert not leads_somewhere("KIP-511, a rumour.")


# Commands -------------------------------------------------------------------------------------------------------------


def test_every_command_has_a_page_with_its_usage_options_and_examples() -> None:
    found = site_commands.pages()
    command: Any = typer.main.get_command(app)
    context = command.make_context("tagwire", [], resilient_parsing=True)
    shown = [name for name in command.list_commands(context) if not command.get_command(context, name).hidden]
    assert set(found) == {"cli/index.md", *(f"cli/{name}.md" for name in shown)}
    groups = found["cli/groups.md"]
    assert "tagwire groups offsets reset [OPTIONS]" in groups
    assert "| `--dry-run` |" in groups
    assert "tagwire decode MetadataRequest --version 12 --hex 00010000\n" in found["cli/decode.md"]
