"""The API reference: a page for each public module, from its docstrings, signatures and stubs.

What is public is what a module's `__all__` names, or, where it has none, what it defines without a leading underscore.
Modules are read, not imported. Raises ValueError for a public name without a docstring.
"""

from __future__ import annotations

import inspect
import logging
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import griffe
from site_citations import linked

MODULES: Final = {
    "client": "Client, producer, consumer, reader, admin",
    "client.aio": "The same for asyncio",
    "client.admin": "What an Admin takes and gives",
    "broker": "The embedded broker",
    "pytest_plugin": "The pytest fixture",
    "records": "Record batches and message sets",
    "records.files": "Kafka's files",
    "messages": "Kafka's messages as classes",
    "codec": "Bytes and values",
    "codec.annotate": "What every byte means",
    "spec": "What a message is",
    "rpc": "Frames, headers, versions",
    "capture": "What clients were seen to ask",
    "values.registry": "Schema registries",
    "spark.functions": "Functions on columns",
    "spark.jobs.land": "Landing a topic as a table",
    "spark.jobs.replay": "Writing a table back",
    "spark.jobs.lag": "How far groups are behind, with Spark",
    "errors": "Errors",
    "extras": "Packages that extras bring",
    "doctor": "What the doctor looks at",
}
SECTIONS: Final = {
    "Args": "Arguments",
    "Attributes": "Attributes",
    "Raises": "Raises",
    "Returns": "Returns",
    "Yields": "Yields",
}
_SHOWN: Final = {"__enter__", "__iter__", "__next__", "__len__", "__getitem__", "__call__"}
# What the language gives every class of a kind; its docstring would say nothing.
_GIVEN: Final = re.compile(r"^__\w+__$")


def pages(source: Path) -> dict[str, str]:
    """{path of the page: its Markdown}, and its index.

    Args:
        source: the directory that has the package.
    """
    logging.getLogger("griffe").setLevel(logging.ERROR)
    package = griffe.load("tagwire", search_paths=[source], resolve_aliases=True, resolve_external=False)
    found = {f"api/tagwire.{name}.md": _page(package[name], f"tagwire.{name}") for name in MODULES}
    rows = "\n".join(f"| <a href='tagwire.{name}.html'>tagwire.{name}</a> | {what} |" for name, what in MODULES.items())
    listed = "\n".join(f"tagwire.{name}" for name in MODULES)
    found["api/index.md"] = (
        "# Python API\n\nEvery public name, with its types, units and errors, from the docstrings of the source.\n\n"
        f"| module | what it has |\n|---|---|\n{rows}\n\n```{{toctree}}\n:hidden:\n\n{listed}\n```\n"
    )
    return found


def public_names(module: Any) -> list[str]:
    """What a module offers, its own order kept."""
    if module.exports is not None:
        return [str(name) for name in module.exports]
    return [
        name
        for name, member in module.members.items()
        if not name.startswith(("_", "pytest_")) and not member.is_alias and not member.is_module and _is_told(member)
    ]


def _is_told(member: Any) -> bool:
    return member.has_docstring or not member.is_attribute


def _page(module: Any, name: str) -> str:
    parts = [f"# {name}\n", *_described(_docstring(module), {})]
    if name == "tagwire.messages":
        parts.append(
            "The classes are those of the [protocol reference](../reference/index.md), which has a page for each: "
            "fields, versions, and the bytes of an example. A request is `NameRequest`, a response `NameResponse`; "
            "fields are in lower case with underscores, structs are classes inside the message's.\n"
        )
    for each in public_names(module):
        member = module[each]
        target = member.final_target if member.is_alias else member
        if name == "tagwire.messages" and target.is_class:
            continue
        parts += _member(target, each, name)
    return "\n".join(parts) + "\n"


def _member(member: Any, shown: str, module: str) -> Iterator[str]:
    if not member.has_docstring:
        raise ValueError(f"{module}.{shown} has no docstring")
    yield f"## `{shown}`\n"
    if member.is_class:
        yield from _class(member, shown)
    elif member.is_function:
        yield _code(_signature(member, shown))
        yield from _described(_docstring(member), _annotations(member))
    else:
        value = "" if member.value is None or len(str(member.value)) > 100 else f" = {member.value}"
        annotation = f": {member.annotation}" if member.annotation is not None else ""
        yield _code(f"{shown}{annotation}{value}")
        yield from _described(_docstring(member), {})


def _class(member: Any, shown: str) -> Iterator[str]:
    bases = [str(base) for base in member.bases if str(base) not in {"object", "NamedTuple"}]
    parents = f"({', '.join(bases)})" if bases else ""
    initial = member.members.get("__init__") or member.all_members.get("__init__")
    plain = initial is not None and initial.is_function and len(initial.parameters) > 1
    if plain and member.labels.isdisjoint({"dataclass"}):
        yield _code(f"class {_signature(initial, shown)}")
    else:
        yield _code(f"class {shown}{parents}:" + "".join(_fields(member)))
    annotations = _annotations(initial) if plain else {}
    annotations |= {
        name: str(each.annotation) for name, each in member.members.items() if getattr(each, "annotation", None)
    }
    yield from _described(_docstring(member), annotations)
    for name, each in sorted(_inherited(member).items(), key=_place_of):
        if name.startswith("_") and name not in _SHOWN:
            continue
        awaited = _awaited(each)
        if awaited is not None:
            yield f"### `{shown}.{name}`\n"
            yield _code(f"async {_signature(awaited, name)}")
            yield from _described(_docstring(awaited), _annotations(awaited))
        elif each.is_function and (each.has_docstring or not _GIVEN.match(name)):
            yield f"### `{shown}.{name}`\n"
            yield _code(_signature(each, name))
            yield from _described(_docstring(each), _annotations(each))
        elif each.is_attribute and each.has_docstring:
            yield f"### `{shown}.{name}`\n"
            yield _code(f"{name}: {each.annotation}" if each.annotation is not None else name)
            yield from _described(_docstring(each), {})


def _awaited(member: Any) -> Any:
    """The call that an attribute is made of by `awaited` (tagwire.client.aio.core_method), for tasks; None of any
    other."""
    value = getattr(member, "value", None)
    if not isinstance(value, griffe.ExprCall) or str(value.function) != "awaited":
        return None
    documented = value.arguments[1]
    assert isinstance(documented, griffe.ExprAttribute)
    found = member.package[documented.canonical_path.partition(".")[2]]
    return found.final_target if found.is_alias else found


def _place_of(item: tuple[str, Any]) -> tuple[str, int]:
    """Where a member stands in the source: what one file says stays together."""
    return str(item[1].filepath), item[1].lineno or 0


def _inherited(member: Any) -> dict[str, Any]:
    """What a class has, and what its bases in this package give it."""
    found = {
        name: each.final_target if each.is_alias else each
        for name, each in member.inherited_members.items()
        if str(each.canonical_path).startswith("tagwire.")
    }
    return {**found, **member.members}


def _fields(member: Any) -> Iterator[str]:
    for name, each in member.members.items():
        if each.is_attribute and not name.startswith("_") and each.annotation is not None:
            value = "" if each.value is None else f" = {each.value}"
            if "property" not in each.labels:
                yield f"\n    {name}: {each.annotation}{value}"


def _signature(function: Any, shown: str) -> str:
    """How it is called, a line for each argument where they are many."""
    arguments: list[str] = []
    keyword_only = False
    for each in function.parameters:
        if each.name in {"self", "cls"}:
            continue
        kind = each.kind.value if each.kind is not None else ""
        if kind == "keyword-only" and not keyword_only:
            arguments.append("*")
        keyword_only = keyword_only or kind in {"keyword-only", "variadic positional"}
        stars = {"variadic positional": "*", "variadic keyword": "**"}.get(kind, "")
        text = f"{stars}{each.name}" + (f": {each.annotation}" if each.annotation is not None else "")
        if each.default is not None and not stars:
            text += f" = {each.default}" if each.annotation is not None else f"={each.default}"
        arguments.append(text)
    gives = f" -> {function.returns}" if function.returns is not None and shown != "__init__" else ""
    line = f"{shown}({', '.join(arguments)}){gives}"
    if len(line) <= 72:
        return line
    return f"{shown}(\n" + "".join(f"    {each},\n" for each in arguments) + f"){gives}"


def _annotations(function: Any) -> dict[str, str]:
    """{argument: its type}, those that `**options: Unpack[...]` names among them."""
    found = {}
    for each in function.parameters:
        if each.annotation is not None:
            found[each.name] = str(each.annotation)
        if found.get(each.name, "").startswith("Unpack["):
            path = each.annotation.slice.canonical_path
            options = function.package[path.partition(".")[2]]
            members = {**options.inherited_members, **options.members}
            found |= {name: str(one.annotation) for name, one in members.items() if one.is_attribute}
    return found


def _docstring(member: Any) -> str:
    return inspect.cleandoc(member.docstring.value) if member.has_docstring else ""


def _code(text: str) -> str:
    return f"```python\n{text}\n```\n"


# -- docstrings


def _described(text: str, annotations: dict[str, str]) -> Iterator[str]:
    """A docstring as Markdown: prose, indented code, and its sections as lists."""
    heading, block = "", [""]
    for line in [*text.splitlines(), "End:"]:
        named = re.fullmatch(r"([A-Z][a-z]+):", line)
        if named and (named[1] in SECTIONS or named[1] == "End"):
            if heading:
                yield f"**{SECTIONS[heading]}**\n"
                yield from _items(block, heading, annotations)
            else:
                yield _prose(block)
            heading, block = named[1], []
        else:
            block.append(line)


def _prose(lines: list[str]) -> str:
    """Paragraphs, and what is indented as code."""
    parts = []
    for paragraph in re.split(r"\n(?=\n*\S)(?<=\n\n)|(?<=\S)\n\n(?=    )", "\n".join(lines).strip("\n")):
        text = paragraph.strip("\n")
        if text.startswith("    "):
            parts.append(_code(textwrap.dedent(text)))
        elif text:
            parts.append(_marked(text) + "\n")
    return "\n".join(parts)


def _items(lines: list[str], heading: str, annotations: dict[str, str]) -> Iterator[str]:
    """The entries of a section, each with its type where it has one."""
    entries: list[list[str]] = []
    for line in textwrap.dedent("\n".join(lines)).splitlines():
        if line.startswith(" ") and entries:
            entries[-1].append(line.strip())
        elif line:
            entries.append([line])
    for entry in entries:
        text = " ".join(entry)
        named = re.match(r"((?:\*{0,2}[\w.]+(?:, )?)+): (.*)", text) if heading not in {"Returns", "Yields"} else None
        if named is None:
            yield f"- {_marked(text)}"
            continue
        names = named[1].split(", ")
        kinds = list(dict.fromkeys(annotations[name] for name in names if name in annotations))
        kind = f" (`{'`, `'.join(kinds)}`)" if kinds and heading != "Raises" else ""
        yield f"- {', '.join(f'`{name}`' for name in names)}{kind}: {_marked(named[2])}"
    yield ""


def _marked(text: str) -> str:
    """Prose in which nothing but code and citations is markup."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part if at % 2 else linked(re.sub(r"([\\*_<>\[\]{}|])", r"\\\1", part).replace("\\_", "_"))
        for at, part in enumerate(parts)
    )
