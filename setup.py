"""Builds the kernels: every module of tagwire.kernel, from the same Python source that also runs uncompiled.

TAGWIRE_PURE=1 leaves them uncompiled; anything else needs a C compiler, and says so when there is none, and a CPython
whose objects the kernels know: they make them word by word.
"""

from __future__ import annotations

import os
import platform
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

OLDEST, NEWEST = (3, 11), (3, 13)
"""Versions of CPython whose objects the kernels can make; src/tagwire/kernel/memory.pxd holds the same."""

PURE = os.environ.get("TAGWIRE_PURE") == "1"
KERNELS = sorted(p for p in Path("src/tagwire/kernel").glob("*.py") if p.name != "__init__.py")

DEPENDENCIES = [
    "cramjam>=2.10,<3",
    "crc32c>=2.7",
    "msgspec>=0.19",
    "pyarrow>=18",
    "rich>=13",
    "typer>=0.26,<0.29",
    "uvloop>=0.21; sys_platform != 'win32' and implementation_name == 'cpython'",
]
if PURE:
    DEPENDENCIES.append("Cython>=3.1,<4")  # the uncompiled kernels import its small shadow module


class BuildKernels(build_ext):
    """build_ext that names the missing compiler instead of ending in a traceback."""

    def run(self) -> None:
        try:
            super().run()
        except Exception as error:
            sys.exit(
                f"tagwire: the kernels could not be compiled ({error}). Install a C compiler and Python's headers, "
                "or set TAGWIRE_PURE=1 for the slow uncompiled kernels."
            )


def refusal() -> str | None:
    """Why the kernels cannot be compiled for this interpreter; None where they can."""
    version = sys.version_info[:2]
    known = f"CPython {'.'.join(map(str, OLDEST))} to {'.'.join(map(str, NEWEST))}"
    if platform.python_implementation() != "CPython":
        return f"they need {known}, and this is {platform.python_implementation()}"
    if not OLDEST <= version <= NEWEST:
        return f"they know how {known} lay out objects, and this is {'.'.join(map(str, version))}"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "this CPython is free-threaded, and they need its global lock"
    return None


def kernels() -> list[Extension]:
    if PURE:
        return []
    if reason := refusal():
        sys.exit(
            f"tagwire: the kernels cannot be compiled: {reason}. Set TAGWIRE_PURE=1 for the slow uncompiled kernels."
        )
    from Cython.Build import cythonize

    extensions = [Extension(f"tagwire.kernel.{path.stem}", [str(path)], extra_compile_args=["-O3"]) for path in KERNELS]
    return cythonize(extensions, language_level=3, build_dir="build/cython")


setup(install_requires=DEPENDENCIES, ext_modules=kernels(), cmdclass={"build_ext": BuildKernels})
