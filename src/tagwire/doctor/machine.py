"""What this machine and this installation have: Python, the kernels, packages, room on the disk."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Final

import tagwire
from tagwire.doctor.findings import OK, PROBLEM, WARNING, Finding

# What a run of Spark leaves in temporary files is more than this as soon as it sorts anything.
LITTLE_ROOM: Final = 1024 * 1024 * 1024
NO_ROOM: Final = 100 * 1024 * 1024

_REQUIREMENT: Final = re.compile(r"([A-Za-z0-9._-]+)\s*(?:\[([^\]]*)\])?\s*\(?([^;)]*)\)?\s*(?:;\s*(.*))?")
_EXTRA: Final = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")
_BOUND: Final = re.compile(r"(~=|==|!=|<=|>=|<|>)\s*([0-9][0-9A-Za-z.]*)")
# Of those who work on tagwire itself, or run it uncompiled; and all the others in one.
_NOT_FOR_USERS: Final = {"dev", "flights", "test", "lint", "bench", "pure", "all"}


def python() -> Iterator[Finding]:
    """Which Python runs, and whether it is the one of the environment that the shell activated."""
    said = f"{platform.python_implementation()} {platform.python_version()} at {sys.executable}"
    said += f"; tagwire {tagwire.__version__} in {Path(tagwire.__file__).parent}"
    activated = os.environ.get("VIRTUAL_ENV")
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        yield Finding(
            "python", WARNING, f"{said}; it is free-threaded", "the kernels need a Python with the global lock"
        )
    elif activated and Path(activated).resolve() != Path(sys.prefix).resolve():
        other = f"{said}, but the shell has activated {activated}"
        yield Finding(
            "python", WARNING, other, f"install tagwire there too, or run {sys.prefix}/bin/tagwire by its path"
        )
    else:
        yield Finding("python", OK, said)


def kernels() -> Iterator[Finding]:
    """Whether the kernels run as machine code."""
    from tagwire import kernel

    again = "pip install --force-reinstall --no-deps tagwire; where no wheel fits that needs a C compiler"
    try:
        compiled = kernel.compiled
    except ImportError as error:
        yield Finding("kernels", PROBLEM, f"they cannot be loaded: {error}", again)
        return
    if compiled:
        yield Finding("kernels", OK, "compiled")
    elif os.environ.get("TAGWIRE_PURE") == "1":
        slow = "not compiled: TAGWIRE_PURE=1 asks for the slow ones in pure Python"
        yield Finding("kernels", WARNING, slow, "unset TAGWIRE_PURE")
    else:
        yield Finding("kernels", WARNING, "not compiled: everything works, slowly", again)


def packages() -> Iterator[Finding]:
    """What tagwire asks for, and which of its extras are here."""
    try:
        required = metadata.requires("tagwire") or []
    except metadata.PackageNotFoundError:
        yield Finding(
            "packages",
            WARNING,
            "tagwire runs from a source tree that is not installed, so that nothing says what it needs",
            "pip install -e . there, or pip install tagwire",
        )
        return
    missing: dict[str, set[str]] = {}
    within: dict[str, set[str]] = {}
    for text in required:
        match = _REQUIREMENT.fullmatch(text.strip())
        if match is None:
            continue
        name, inner, bounds, marker = match[1], match[2] or "", match[3].strip(), match[4] or ""
        extra = _EXTRA.search(marker)
        of = extra[1] if extra else ""
        if of in _NOT_FOR_USERS:
            continue
        within.setdefault(of, set())
        if name.lower() == "tagwire":
            within[of].update(filter(None, re.split(r"[\s,]+", inner)))
            continue
        version = _version(name)
        if version is None:
            # A condition that is about something else than extras need not hold here.
            if not marker or extra:
                missing.setdefault(of, set()).add(name)
        elif not fits(version, bounds):
            pinned = f"tagwire[{of}]" if of else "tagwire"
            said = f"{name} {version} is installed, and {pinned} wants {bounds}"
            yield Finding("packages", WARNING if of else PROBLEM, said, f"pip install '{name}{bounds}'")
    if core := sorted(missing.get("", ())):
        yield Finding("packages", PROBLEM, f"missing: {', '.join(core)}", f"pip install {' '.join(core)}")
    lacks = {extra: _lacks(extra, missing, within, frozenset()) for extra in sorted(within) if extra}
    said = f"extras installed: {', '.join(extra for extra in lacks if not lacks[extra]) or 'none'}"
    if some := {extra: names for extra, names in lacks.items() if names}:
        told = "; ".join(f"{extra} (lacks {', '.join(sorted(names))})" for extra, names in some.items())
        said += f"; not installed: {told}; where one is wanted: pip install 'tagwire[{min(some)}]'"
    yield Finding("packages", OK, said)


def _lacks(
    extra: str, missing: Mapping[str, set[str]], within: Mapping[str, set[str]], above: frozenset[str]
) -> set[str]:
    """What an extra needs and is not here, through the extras that it is made of."""
    names = set(missing.get(extra, ()))
    for inner in within.get(extra, set()) - above:
        names |= _lacks(inner, missing, within, above | {extra})
    return names


def disk() -> Iterator[Finding]:
    """Whether temporary files can be written, and how much room there is for them."""
    for variable in ("TMPDIR", "SPARK_LOCAL_DIRS"):
        for folder in os.environ.get(variable, "").split(","):
            if folder and not os.access(folder, os.W_OK | os.X_OK):
                said = f"{variable}={folder} is not there, or cannot be written to"
                yield Finding("disk", PROBLEM, said, f"make that directory, or set {variable} to another")
    try:
        folder = tempfile.gettempdir()
        with tempfile.NamedTemporaryFile(dir=folder) as file:
            file.write(b"\0" * 4096)
            file.flush()
    except OSError as error:
        said = f"no temporary file can be written: {error.strerror or error}"
        yield Finding("disk", PROBLEM, said, "make room, or set TMPDIR to a directory that can be written to")
        return
    free = shutil.disk_usage(folder).free
    said = f"{free / 1024**3:.1f} GiB free for temporary files in {folder}"
    if free < LITTLE_ROOM:
        state = PROBLEM if free < NO_ROOM else WARNING
        yield Finding("disk", state, said, "make room, or set TMPDIR (and SPARK_LOCAL_DIRS for Spark) to another disk")
    else:
        yield Finding("disk", OK, said)


def fits(version: str, bounds: str) -> bool:
    """Whether a version is within bounds such as `>=4.0,<5`. Only the numbers of a release are compared."""
    own = _numbers(version)
    for sign, text in _BOUND.findall(bounds):
        other = _numbers(text)
        length = max(len(own), len(other))
        left, right = own + (0,) * (length - len(own)), other + (0,) * (length - len(other))
        holds = {
            ">=": left >= right,
            "<=": left <= right,
            ">": left > right,
            "<": left < right,
            "==": left == right,
            "!=": left != right,
            "~=": left >= right and own[: len(other) - 1] == other[:-1],
        }
        if not holds[sign]:
            return False
    return True


def _numbers(text: str) -> tuple[int, ...]:
    found = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(map(int, found[0].split("."))) if found else ()


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
