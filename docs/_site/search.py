"""The search of the site: an index that Pagefind makes of the pages that are built.

The search of Sphinx drops numbers, such as 429, and ranks the reference above all else.
Pagefind finds pages that have all words of a question. The front matter of a page may
have more, in ``keywords``, which are searched as if they stood on it.
"""

import html
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

__all__ = ["setup"]

_WEIGHTS: Final = {"how_to/": 2.0, "install": 2.0, "patterns/": 2.0, "tutorial": 2.0}
_WEIGHTS |= {"changelog": 0.2, "reference/": 0.2}
"""By the beginnings of the names of pages. Most people look for a program."""
# Marked already, if the page was built before.
_BODY: Final = re.compile(
    r'<article( data-pagefind-\S+)* (?P<rest>role="main"[^>]*>)(<i data-.*</i>)?'
)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the search page with Sphinx, and replace its own search."""
    app.connect("builder-inited", _replace_search)
    app.connect("build-finished", _index)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _replace_search(app: Sphinx) -> None:
    if app.builder.name == "html":
        app.builder.search = False
        app.config.html_additional_pages["search"] = "search.html"


def _index(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.name != "html":
        return
    for name in app.env.found_docs:
        keywords = str(app.env.metadata[name].get("keywords", ""))
        _mark(Path(app.outdir, f"{name}.html"), _weight(name), keywords)
    command = [sys.executable, "-m", "pagefind", "--quiet", "--site", str(app.outdir)]
    command += ["--exclude-selectors", ".headerlink"]
    done = subprocess.run(  # noqa: S603  this interpreter
        command, capture_output=True, check=False, text=True
    )
    if done.returncode:
        msg = f"Pagefind failed: {done.stderr.strip() or done.stdout.strip()}"
        raise ExtensionError(msg)


def _weight(name: str) -> float:
    """Return how much the words of a page count."""
    found = (weight for begin, weight in _WEIGHTS.items() if name.startswith(begin))
    return next(found, 1.0)


def _mark(page: Path, weight: float, keywords: str) -> None:
    """Mark the part of a page that is searched; all else is not."""
    marked = f'<article data-pagefind-body data-pagefind-weight="{weight}" \\g<rest>'
    if keywords:
        marked += '<i data-pagefind-index-attrs="data-keywords"'
        marked += f' data-keywords="{html.escape(keywords)}"></i>'
    text, count = _BODY.subn(marked, page.read_text("utf-8"))
    if not count:
        msg = f"{page} has no article of the role main, so that nobody would find it"
        raise ExtensionError(msg)
    page.write_text(text, "utf-8")
