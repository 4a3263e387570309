"""The blocks of code and of commands in the README and in docs, page by page."""

import re
from pathlib import Path
from textwrap import dedent

import pytest

__all__ = ["PAGES", "ROOT", "blocks", "marks_of", "page_id"]

ROOT = Path(__file__).parents[2]
# Pages of modules are written by the build of the site.
_WRITTEN = {*(ROOT / "docs/reference").glob("retrykit.*.md")}
PAGES = [ROOT / "README.md", *sorted({*(ROOT / "docs").rglob("*.md")} - _WRITTEN)]

_BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def blocks(page):
    """Return the blocks of a page in their order, each with its language."""
    found = _BLOCK.findall(page.read_text("utf-8"))
    # Those of a list are indented.
    return [(language, dedent(text)) for language, text in found]


def page_id(page):
    """Return the path of a page in the project."""
    return page.relative_to(ROOT).as_posix()


def marks_of(name):
    """Return the marks of tests of a page: those of all but the README are thorough."""
    return [] if name == "README.md" else [pytest.mark.thorough]
