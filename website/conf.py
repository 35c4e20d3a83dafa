"""Sphinx's settings. `make docs` runs it; make_site.py says how."""

from __future__ import annotations

import site_anchors
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from tagwire import __version__

project = "tagwire"
author = "the tagwire authors"
copyright = author
extensions = ["myst_parser", "site_reference", "site_decoder"]
root_doc = "index"
release = __version__
smartquotes = False  # options begin with two dashes

# The anchor of a heading is the one that it has on GitHub, whatever comes before it on the page.
myst_heading_anchors = 6
myst_enable_extensions = ["attrs_inline", "colon_fence"]

html_theme = "pydata_sphinx_theme"
html_title = "tagwire"
html_favicon = "static/favicon.svg"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["from-files.js"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_copyright = False
html_sidebars = {"index": [], "decoder": [], "reference/**": ["reference-nav"]}
WIDE = ("releases", "diff", "errors", "kips")
html_theme_options = {
    "logo": {"text": "tagwire"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "navigation_with_keys": False,
    "show_nav_level": 1,
    "show_toc_level": 2,
    "secondary_sidebar_items": {
        "**": ["page-toc"],
        # Their tables are as wide as they are given room.
        "index": [],
        "reference/index": [],
        **{f"reference/{name}/index": [] for name in WIDE},
    },
    "footer_start": ["footer"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "back_to_top_button": False,
}
templates_path = ["templates"]


class Anchors(SphinxTransform):
    """Gives every section the anchor of its heading's slug, by which links name it here and on GitHub."""

    default_priority = 500

    def apply(self, **kwargs: object) -> None:
        before = site_anchors.former(self.env.docname)
        for section in self.document.findall(nodes.section):
            anchor = section.get("slug")
            title = section.next_node(nodes.title)
            if self.env.docname.startswith("api/") and title and isinstance(title[0], nodes.literal):
                anchor = title.astext()  # names of the API differ by case
            if anchor:
                section["ids"] = [anchor, *before.get(anchor, ())]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_transform(Anchors)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
