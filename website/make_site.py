"""Builds the site: `make docs`.

    .venv/bin/python website/make_site.py          # build/docs/index.html

Sphinx and its theme are installed into an environment of their own under .cache/, which sees the project's packages.
A warning is an error, and so is a link to a page or an anchor that is not there. Nothing is fetched when the site is
read: open build/docs/index.html, or serve the directory.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import time
import venv
from pathlib import Path

from site_links import broken_links

HERE = Path(__file__).parent
ROOT = HERE.parent
SOURCE = ROOT / "build" / "docs-source"
BESIDE = ROOT / "build" / "docs-beside"
"""What the site has as it is: data and scripts."""
SITE = ROOT / "build" / "docs"
CACHE = ROOT / ".cache" / "website"
REQUIREMENTS = HERE / "requirements.txt"


def environment() -> Path:
    """The Python that has Sphinx, installed once for each text of the requirements.

    Raises:
        SystemExit: pip failed.
    """
    decides = REQUIREMENTS.read_text(encoding="utf-8") + sys.version + sys.prefix
    home = CACHE / f"sphinx-{hashlib.sha256(decides.encode()).hexdigest()[:12]}"
    python = home / "bin" / "python"
    if (home / ".ready").exists():
        return python
    print("docs: installing Sphinx and its theme", flush=True)
    venv.create(home, clear=True, with_pip=True)
    pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-compile", "-r", REQUIREMENTS]
    if subprocess.run(pip, check=False).returncode:
        sys.exit("docs: pip could not install website/requirements.txt, see above")
    # What API pages are made from is imported: the project's packages come after Sphinx's own.
    paths = sysconfig.get_paths(vars={"base": str(home), "platbase": str(home)})
    Path(paths["purelib"], "project.pth").write_text(sysconfig.get_paths()["purelib"] + "\n", encoding="utf-8")
    (home / ".ready").touch()
    return python


def sphinx(python: Path) -> None:
    """Source to pages.

    Raises:
        SystemExit: there were warnings, or a step failed.
    """
    settings = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{HERE}", "TAGWIRE_DOCS_BESIDE": str(BESIDE)}
    if subprocess.run([python, HERE / "site_sources.py", SOURCE, BESIDE], env=settings, check=False).returncode:
        sys.exit("docs: the pages could not be gathered, see above")
    command = [python, "-m", "sphinx", "-q", "-W", "--keep-going", "-j", "auto", "-c", HERE, "-d", CACHE / "doctrees"]
    command += ["-D", f"html_extra_path={BESIDE}"]
    if subprocess.run([*command, SOURCE, SITE], env=settings, check=False).returncode:
        sys.exit("docs: Sphinx had something to say, see above")
    (SITE / "_static" / "webpack-macros.html").unlink()  # of the theme's templates, and no page


def main() -> None:
    began = time.monotonic()
    python = environment()
    ready = time.monotonic()
    if SITE.exists():
        shutil.rmtree(SITE)
    sphinx(python)
    broken = broken_links(SITE)
    if broken:
        sys.exit("\n".join(["docs: links that lead nowhere:", *broken]))
    files = [path for path in SITE.rglob("*") if path.is_file()]
    pages = sum(path.suffix == ".html" for path in files)
    size = sum(path.stat().st_size for path in files) / 1e6
    took = time.monotonic() - ready
    print(f"docs: {pages} pages, {len(files)} files, {size:.1f} MB, no warning, no broken link; {took:.0f} s", end="")
    print(f" and {ready - began:.0f} s to install" if ready - began > 1 else "")
    print(f"docs: open {(SITE / 'index.html').relative_to(ROOT)}")


if __name__ == "__main__":
    main()
