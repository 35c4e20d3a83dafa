"""Builds the site: `make docs`.

    .venv/bin/python website/make_site.py          # build/docs/index.html

Sphinx and its theme are installed into an environment of their own under .cache/, which sees the project's packages.
A warning is an error, and so is a link to a page or an anchor that is not there. Where nothing has changed, nothing is
made. Nothing is fetched when the site is read: open build/docs/index.html, or serve the directory.
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
STAMP = ROOT / "build" / "docs.stamp"
"""Of a site that was made to its end: what it is made of, and what was said."""
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


def decides() -> str:
    """What the site is made of, in a few bytes."""
    found = hashlib.sha256(sys.version.encode())
    for folder in ("docs", "examples", "src/tagwire", "website"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix not in {".so", ".c", ".pyc"}:
                found.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return found.hexdigest()


def main() -> None:
    began = time.monotonic()
    made_of = decides()
    if SITE.exists() and STAMP.exists() and STAMP.read_text(encoding="utf-8").startswith(made_of):
        print(STAMP.read_text(encoding="utf-8").partition("\n")[2], end="")
        return
    STAMP.unlink(missing_ok=True)
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
    said = f"docs: {pages} pages, {len(files)} files, {size:.1f} MB, no warning, no broken link; {took:.0f} s"
    said += f" and {ready - began:.0f} s to install\n" if ready - began > 1 else "\n"
    said += f"docs: open {(SITE / 'index.html').relative_to(ROOT)}\n"
    if (BESIDE / "decoder").exists():  # without it the next build tries again to fetch what it needs
        STAMP.write_text(f"{made_of}\n{said}", encoding="utf-8")
    print(said, end="")


if __name__ == "__main__":
    main()
