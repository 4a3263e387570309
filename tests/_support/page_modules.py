"""The blocks of code of a page as modules, named by their first line: ``# name.py``."""

import importlib
import re
import sys
from contextlib import contextmanager

from tests._support.documents import ROOT

__all__ = ["imported_page"]

FILE = re.compile(r"```python\n# (\w+)\.py\n(.*?)```", re.DOTALL)


@contextmanager
def imported_page(name, folder):
    """Return a function that imports a module of a page; forget all of them later."""
    texts = dict(FILE.findall((ROOT / "docs" / name).read_text("utf-8")))
    for module, text in texts.items():
        (folder / f"{module}.py").write_text(text, "utf-8")
    sys.path.insert(0, str(folder))
    try:
        yield importlib.import_module
    finally:
        sys.path.remove(str(folder))
        for module in texts:
            sys.modules.pop(module, None)
