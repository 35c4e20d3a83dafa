"""The decoder's page: Pyodide from its published package, and the part of our source that decodes.

Where Pyodide cannot be fetched, the page says so, and the rest of the site is as it is.
"""

from __future__ import annotations

import io
import os
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from docutils import nodes
from site_npm import package
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parent
RUNTIME: Final = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
SOURCES: Final = (
    "*.py",
    "codec/**/*.py",
    "kernel/*.py",
    "reference/*.py",
    "rpc/**/*.py",
    "spec/**/*.py",
    "spec/catalog/*.json",
    "spec/*.json",
)


def files() -> dict[str, bytes]:
    """{path below the site: content} of what the page loads; empty where Pyodide cannot be had, which is printed."""
    runtime = package(HERE / "decoder" / "package.json")
    if isinstance(runtime, str):
        print(f"docs: NOT RUN decoder: {runtime}", flush=True)
        return {}
    found = {f"decoder/pyodide/{name}": (runtime / name).read_bytes() for name in RUNTIME}
    found["decoder/worker.mjs"] = (HERE / "decoder" / "worker.mjs").read_bytes()
    found["decoder/tagwire.zip"] = archive()
    return found


def archive() -> bytes:
    """The source that decodes, and the shadow module that uncompiled kernels import, the same bytes at every build."""
    written = io.BytesIO()
    source = ROOT / "src" / "tagwire"
    paths = {path: path.relative_to(source.parent) for pattern in SOURCES for path in source.glob(pattern)}
    shadow = find_spec("cython")
    assert shadow is not None
    assert shadow.origin is not None
    beside = Path(shadow.origin).parent
    paths |= {beside / name: Path(name) for name in ("cython.py", "Cython/__init__.py", "Cython/Shadow.py")}
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as into:
        for path, name in sorted(paths.items(), key=lambda item: item[1]):
            into.writestr(zipfile.ZipInfo(name.as_posix()), path.read_bytes(), zipfile.ZIP_DEFLATED)
    return written.getvalue()


_FORM: Final = """
<form id="decoder-form" data-worker="decoder/worker.mjs" hidden>
  <p><label for="decoder-text">Bytes, in hexadecimal or base64</label>
  <textarea id="decoder-text" name="text" rows="5" spellcheck="false" autocomplete="off"
    placeholder="0000000d0012000000000007000378797a"></textarea></p>
  <p class="decoder-row"><label for="decoder-kind">They are</label>
  <select id="decoder-kind" name="kind">
    <option value="guess">whatever fits</option>
    <option value="request">frames of requests</option>
    <option value="response">a frame of a response</option>
    <option value="message">the body of a message</option>
    <option value="records">record batches</option>
  </select>
  <span id="decoder-named" hidden>
    <label for="decoder-message">of</label>
    <input id="decoder-message" name="message" list="decoder-messages" autocomplete="off"
      placeholder="MetadataResponse">
    <datalist id="decoder-messages"></datalist>
    <label for="decoder-version">version</label>
    <input id="decoder-version" name="version" inputmode="numeric" size="3" autocomplete="off">
  </span>
  <button type="submit">Decode</button></p>
</form>
<p id="decoder-status" role="status"></p>
<p id="decoder-unavailable" class="decoder-error" hidden>The decoder cannot be loaded. Browsers load it from a server
only, not from files: <code>python -m http.server -d build/docs</code> is one.</p>
<div id="decoder-output"></div>
<noscript><p>The decoder needs scripts; <code>tagwire decode --annotate</code> does not.</p></noscript>
"""
_ABSENT: Final = (
    "<p><strong>This copy of the site was made without the decoder</strong>: Pyodide could not be fetched.</p>"
)


class Decoder(SphinxDirective):
    """`decoder`: the form, or a line that says that this site has none."""

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()  # what it shows is not in its page
        shipped = Path(os.environ["TAGWIRE_DOCS_BESIDE"], "decoder", "worker.mjs").exists()
        return [nodes.raw("", _FORM if shipped else _ABSENT, format="html", classes=["no-search"])]


def _scripts(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    if page == "decoder":
        app.add_js_file("decoder.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("decoder", Decoder)
    app.connect("html-page-context", _scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
