"""The blocks of code and of commands in the README and in docs, page by page."""

import re
from pathlib import Path

__all__ = ["PAGES", "ROOT", "blocks", "page_id"]

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

_BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def blocks(page):
    """Return the blocks of a page in their order, each with its language."""
    return _BLOCK.findall(page.read_text("utf-8"))


def page_id(page):
    """Return the path of a page in the project."""
    return page.relative_to(ROOT).as_posix()
