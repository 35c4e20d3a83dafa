"""Builds the kernels: every module of tagwire.kernel, from the same Python source that also runs uncompiled.

They are compiled wherever they can be; what else a distribution holds and needs stands in pyproject.toml.
TAGWIRE_PURE=1 leaves them out. So does an interpreter whose objects they do not know, which they make word by word:
there they run uncompiled, and `tagwire.kernel` says so. Anything else needs a C compiler, and says when there is none.
"""

from __future__ import annotations

import os
import platform
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

OLDEST, NEWEST = (3, 11), (3, 14)
"""Versions of CPython whose objects the kernels can make; src/tagwire/kernel/memory.pxd holds the same."""

PURE = os.environ.get("TAGWIRE_PURE") == "1"
KERNELS = sorted(p for p in Path("src/tagwire/kernel").glob("*.py") if p.name != "__init__.py")
TRANSLATED = Path("build/cython")


class BuildKernels(build_ext):
    """build_ext that compiles on all cores what is out of date, goes on where it was interrupted, and names the missing
    compiler instead of ending in a traceback."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def run(self) -> None:
        try:
            self.translate()
            # The largest first, so that no core is left with it at the end.
            self.extensions.sort(key=lambda kernel: -Path(kernel.sources[0]).stat().st_size)
            self.numbers = count(1)
            super().run()
        except Exception as error:
            sys.exit(
                f"tagwire: the kernels could not be compiled ({error}). Install a C compiler and Python's headers, "
                "or set TAGWIRE_PURE=1 for the slow uncompiled kernels."
            )

    def translate(self) -> None:
        """Have the kernels as C."""
        from Cython.Build import cythonize

        if not self.extensions:
            return
        TRANSLATED.mkdir(parents=True, exist_ok=True)
        with finished(TRANSLATED / "unfinished") as whole:
            for half in [] if whole else TRANSLATED.rglob("*.c"):
                half.unlink()
            made = cythonize(
                [Extension(kernel.name, list(kernel.sources)) for kernel in self.extensions],
                build_dir=str(TRANSLATED),
                # What follows `if cython.compiled: return` is for the uncompiled source.
                compiler_directives={"language_level": 3, "warn.unreachable": False},
                nthreads=self.parallel,
                quiet=True,
            )
        sources = {kernel.name: kernel.sources for kernel in made}
        for kernel in self.extensions:
            kernel.sources = sources[kernel.name]

    def build_extension(self, ext: Extension) -> None:
        target = Path(self.get_ext_fullpath(ext.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        with finished(target.with_suffix(".unfinished")) as whole:
            if not whole:
                target.unlink(missing_ok=True)
            super().build_extension(ext)
        print(f"kernel {next(self.numbers)} of {len(self.extensions)}: {ext.name}", flush=True)


@contextmanager
def finished(mark: Path) -> Iterator[bool]:
    """Leaves `mark` where the block does not come to its end, be it by a kill. Gives whether it did the last time."""
    whole = not mark.exists()
    mark.touch()
    yield whole
    mark.unlink()


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
        print(f"tagwire: the kernels are left uncompiled, and slow: {reason}.", file=sys.stderr)
        return []
    return [
        Extension(
            f"tagwire.kernel.{path.stem}",
            [str(path)],
            depends=["setup.py"],
            extra_compile_args=["-O3", "-g0"],
            extra_link_args=["-Wl,-s"] if sys.platform == "linux" else [],
        )
        for path in KERNELS
    ]


if __name__ == "__main__":
    setup(ext_modules=kernels(), cmdclass={"build_ext": BuildKernels})
