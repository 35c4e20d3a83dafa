"""Rebuilds src/tagwire/spec/releases.json: which versions of which APIs each Kafka release serves.

From 2.8 on the specs inside Kafka's published client jars say it: a request's `validVersions`, `deprecatedVersions`,
`latestVersionUnstable`, and which of the listeners `broker` and `zkBroker` it names. The releases before carry no
specs. 0.8.2, 0.9.0 and 0.10.0 are stated here, read off their published jars: the request schemas in the client jar's
Protocol class, the requests that the server jar's KafkaApis dispatches, and the versions that the server's own request
classes read. (0.8.2's client knew JoinGroup and Heartbeat, which its broker refused.)

    python scripts/rebuild_releases.py            writes the table
    python scripts/rebuild_releases.py --check    exit code 1 if the jars say something else than the table

The catalog is not touched: its marks of deprecated versions, and of those not to be used, are stated there by hand. A
test compares the deprecated ones with the table.

A jar that cannot be fetched is named as NOT RUN: `--check` then takes the table's word for it.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import zipfile
from pathlib import Path
from typing import Any, Final

from kafka_jars import MavenError, jars, kafka, published

from tagwire.spec.api_keys import API_NAMES

TABLE: Final = Path(__file__).resolve().parent.parent / "src" / "tagwire" / "spec" / "releases.json"
FIRST: Final = (2, 8, 0)
LISTENERS: Final = ("broker", "zkBroker")

Apis = dict[int, str]
"""API key -> versions, as the table spells them."""

BY_HAND: Final[dict[str, tuple[list[str], Apis]]] = {
    "0.8.2": (["0.8.2.0", "0.8.2.1", "0.8.2.2"], {**dict.fromkeys(range(11), "0"), 8: "0-1", 9: "0-1"}),
    "0.9.0": (
        ["0.9.0.0", "0.9.0.1"],
        {**dict.fromkeys(range(17), "0"), 0: "0-1", 1: "0-1", 6: "0-1", 7: "0-1", 8: "0-2", 9: "0-1"},
    ),
    "0.10.0": (
        ["0.10.0.0", "0.10.0.1"],
        {
            **dict.fromkeys(range(19), "0"),
            0: "0-2",
            1: "0-2",
            3: "0-1",
            6: "0-2",
            7: "0-1",
            8: "0-2",
            9: "0-1",
        },
    ),
}
"""Release -> its published versions, and what its brokers serve."""

_STRING_OR_COMMENT: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_DEPRECATED: Final = re.compile(r" deprecated \S+")


def main() -> int:
    """Runs the command; returns its exit code."""
    parser = argparse.ArgumentParser(description="Rebuild the table of Kafka's releases from its client jars.")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    if parser.parse_args().check:
        return check()
    found, reasons = stated_by_jars(newer_than_the_first(published("kafka-clients")))
    if reasons:
        print(*reasons, sep="\n", file=sys.stderr)
        return 1
    TABLE.write_text(render(found), encoding="utf-8")
    print(f"{TABLE.name}: {len(found)} client jars and {len(BY_HAND)} releases by hand")
    return 0


def check() -> int:
    """Compares the table with the jars it was made from."""
    text = TABLE.read_text(encoding="utf-8")
    table = json.loads(text)
    rows = {name: versions for name, versions in table["releases"].items() if name not in BY_HAND}
    listed = [version for versions in rows.values() for version in versions]
    found, reasons = stated_by_jars(listed)
    for reason in reasons:
        print(reason)
    try:
        missing = [version for version in newer_than_the_first(published("kafka-clients")) if version not in listed]
    except MavenError as error:
        print(f"NOT RUN: the list of published releases: {error}")
    else:
        for version in missing:
            print(f"not in the table yet: Kafka {version} was published")
    checked = len(found)
    for name, versions in rows.items():
        for version in versions:
            found.setdefault(version, row_of(table, name))
    if render({version: found[version] for version in listed}) == text:
        print(f"{TABLE.name} says what {checked} of {len(listed)} client jars say")
        return 0
    for name, versions in rows.items():
        for line in differences(row_of(table, name), {version: found[version] for version in versions}):
            print(f"{TABLE.name}, Kafka {name}, {line}")
    print(f"{TABLE.name} is not what the jars give: run scripts/rebuild_releases.py")
    return 1


def newer_than_the_first(versions: list[str]) -> list[str]:
    """The releases whose client jars carry specs, oldest first."""
    numbers = {tuple(map(int, v.split("."))): v for v in versions if re.fullmatch(r"\d+\.\d+\.\d+", v)}
    return [numbers[number] for number in sorted(numbers) if number >= FIRST]


def stated_by_jars(versions: list[str]) -> tuple[dict[str, dict[str, Apis]], list[str]]:
    """(What each version's jar says, by listener; a line for each jar that could not be fetched.)"""
    paths, reasons = jars(kafka("kafka-clients", version) for version in versions)
    found = {jar[2]: stated_by_jar(path) for jar, path in paths.items()}
    return found, [f"NOT RUN: {jar[1]} {jar[2]}: {reason}" for jar, reason in reasons.items()]


def stated_by_jar(path: Path) -> dict[str, Apis]:
    """What the specs of one client jar say, by listener."""
    found: dict[str, Apis] = {listener: {} for listener in LISTENERS}
    with zipfile.ZipFile(path) as jar:
        for name in jar.namelist():
            if re.fullmatch(r"common/message/\w+Request\.json", name):
                spec = read_spec(jar.read(name).decode("utf-8"))
                for listener in found.keys() & set(spec.get("listeners", ())):
                    found[listener][spec["apiKey"]] = spell(spec)
    return found


def read_spec(text: str) -> dict[str, Any]:
    """A published spec. Kafka's parser lets pass what ours refuses: 2.8 has a stray brace, 3.8 a key given twice."""
    bare = _STRING_OR_COMMENT.sub(lambda match: match[0] if match[0][0] == '"' else " ", text)
    spec: dict[str, Any] = json.JSONDecoder().raw_decode(bare.lstrip())[0]
    return spec


def spell(spec: dict[str, Any]) -> str:
    """A request's versions as the table spells them."""
    deprecated = spec.get("deprecatedVersions", "none")
    unstable = spec.get("latestVersionUnstable", False)
    return (
        spec["validVersions"]
        + (f" deprecated {deprecated}" if deprecated != "none" else "")
        + (" unstable" if unstable else "")
    )


def render(found: dict[str, dict[str, Apis]]) -> str:
    """The table's text, from what each version's jar says; versions oldest first."""
    rows = {name: ({"broker": apis, "zkBroker": apis}, versions) for name, (versions, apis) in BY_HAND.items()}
    rows.update({name: (found[versions[-1]], versions) for name, versions in group(found).items()})
    lines = ["{", '"releases": {']
    lines += separated(f"{json.dumps(name)}: {json.dumps(versions)}" for name, (_, versions) in rows.items())
    lines += ["},", '"listeners": {']
    for listener in LISTENERS:
        lines.append(f'"{listener}": [')
        lines += separated(api_lines({name: apis[listener] for name, (apis, _) in rows.items()}))
        lines.append("]," if listener != LISTENERS[-1] else "]")
    return "\n".join([*lines, "}", "}", ""])


def group(found: dict[str, dict[str, Apis]]) -> dict[str, list[str]]:
    """Row name -> its versions. Patches of a line share a row as long as they serve the same ranges."""
    groups: list[list[str]] = []
    for version in found:
        last = groups[-1] if groups else []
        if last and line_of(last[0]) == line_of(version) and served(found[last[0]]) == served(found[version]):
            last.append(version)
        else:
            groups.append([version])
    of_line = [line_of(versions[0]) for versions in groups]
    return {line if of_line.count(line) == 1 else versions[0]: versions for line, versions in zip(of_line, groups)}


def line_of(version: str) -> str:
    return version.rpartition(".")[0]


def served(apis: dict[str, Apis]) -> dict[str, Apis]:
    """The ranges without their deprecation."""
    return {
        listener: {key: _DEPRECATED.sub("", text) for key, text in ranges.items()} for listener, ranges in apis.items()
    }


def api_lines(rows: dict[str, Apis]) -> list[str]:
    """One line for each API: its ranges, each at the first release that has it."""
    lines = []
    for key in sorted({key for apis in rows.values() for key in apis}):
        since: dict[str, str] = {}
        last = "none"
        for name, apis in rows.items():
            now = apis.get(key, "none")
            if now != last:
                since[name] = last = now
        lines.append(json.dumps({"key": key, "name": API_NAMES[key], "since": since}))
    return lines


def separated(lines: Any) -> list[str]:
    """Lines of a JSON list: a comma after each but the last."""
    every = list(lines)
    return [line + "," for line in every[:-1]] + every[-1:]


def row_of(table: dict[str, Any], name: str) -> dict[str, Apis]:
    """A row of the table, by listener."""
    names = list(table["releases"])
    up_to_here = names[names.index(name) :: -1]
    found: dict[str, Apis] = {}
    for listener, lines in table["listeners"].items():
        texts = {
            line["key"]: next((line["since"][row] for row in up_to_here if row in line["since"]), "none")
            for line in lines
        }
        found[listener] = {key: text for key, text in texts.items() if text != "none"}
    return found


def differences(row: dict[str, Apis], jars_say: dict[str, dict[str, Apis]]) -> list[str]:
    """Where jars say something else than their row; deprecation counts in the row's newest patch alone."""
    lines = []
    newest = list(jars_say)[-1]
    for version, apis in jars_say.items():
        ours, theirs = (row, apis) if version == newest else (served(row), served(apis))
        for listener in LISTENERS:
            for key in sorted(ours[listener].keys() | theirs[listener].keys()):
                here, there = ours[listener].get(key, "none"), theirs[listener].get(key, "none")
                if here != there:
                    lines.append(f"{listener} {key}: the table says {here}, the jar of {version} says {there}")
    return lines


if __name__ == "__main__":
    try:
        sys.exit(main())
    except MavenError as error:
        sys.exit(f"rebuild_releases: {error}")
