"""HTML that cannot be broken by what it shows: whatever is no `Markup` is text, and is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from tagwire.escaping import html_text

_VOID: Final = frozenset({"br", "hr", "input", "link", "meta"})

_TAGS: Final = re.compile(r"(<[^>]*>)")
_BETWEEN_WORDS: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=\w_)(?=\w)")


class Markup(str):
    """A piece of whole HTML elements. Only the functions here make one."""

    __slots__ = ()


Content = Markup | str | int


def element(name: str, /, *content: Content, **attributes: str | int | bool | None) -> Markup:
    """One element.

    Args:
        content: what stands in it; text is escaped.
        attributes: by name; a `_` at the end is dropped, any other is a `-`. None and False are left out, True has no
            value.
    """
    shown = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Markup(f"<{name}{shown}>")
    return Markup(f"<{name}{shown}>{joined(content)}</{name}>")


def joined(content: Iterable[Content], between: str = "") -> Markup:
    """The pieces one after another; text is escaped."""
    return Markup(between.join(one if isinstance(one, Markup) else html_text(str(one)) for one in content))


def breakable(markup: Markup) -> Markup:
    """The same, with the places at which a narrow column breaks a name: UNKNOWN_ TOPIC_ OR_ PARTITION."""
    parts = _TAGS.split(markup)
    return Markup("".join(one if one.startswith("<") else _BETWEEN_WORDS.sub("<wbr>", one) for one in parts))


def _attribute(key: str, value: str | int | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{html_text(str(value))}"'
