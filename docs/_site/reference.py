"""The reference: a page for each public module, made from its docstrings.

``docs/reference/index.md`` lists the modules. Their pages are written before Sphinx
reads the sources. In docstrings, a name in single backticks links to its own page,
wherever the name is defined, and is code if there is no such page.
"""

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.domains.python import ObjectEntry, PyClasslike, PyXRefRole
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import find_pending_xref_condition, make_refnode

__all__ = ["modules", "setup"]

_PAGE = """\
# {name}

```{{eval-rst}}
.. automodule:: {name}
   :members:
   :imported-members:
   :exclude-members: {foreign}
```
"""


def modules(folder: Path) -> list[str]:
    """Return the modules that the index of the reference lists."""
    index = (folder / "index.md").read_text("utf-8")
    return re.findall(r"^(retrykit\.[\w.]+)$", index, re.MULTILINE)


def foreign_members(name: str) -> Iterator[str]:
    """Yield what the classes of a module inherit from classes of other libraries."""
    module = import_module(name)
    for each in module.__all__:
        for base in getattr(getattr(module, each), "__mro__", ()):
            if base.__module__.split(".")[0] not in {"builtins", "retrykit", "typing"}:
                yield from (member for member in vars(base) if member[0] != "_")


def write_pages(app: Sphinx) -> None:
    """Write the pages, and only those that change."""
    folder = app.srcdir / "reference"
    for name in modules(folder):
        foreign = ", ".join(sorted(set(foreign_members(name)))) or "None"
        path, text = folder / f"{name}.md", _PAGE.format(name=name, foreign=foreign)
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def rank(name: str) -> tuple[int, str]:
    """Sort the names of one object: the shortest way to import it is the first."""
    return name.count("."), name


def find_object(objects: dict[str, ObjectEntry], target: str) -> str | None:
    """Return the public name of what a docstring or a type names."""
    names = target.rstrip("()").removeprefix("retrykit.").split(".")
    # A private module, as in `retrykit._core.policy.Policy`, is no part of the name.
    while names and names[0].startswith("_"):
        names = names[1:]
    for start in range(len(names)):
        ending = "." + ".".join(names[start:])
        found = [name for name in objects if name.endswith(ending)]
        if found:
            return min(found, key=rank)
    return None


class PublicClass(PyClasslike):
    """A class that several modules export, and that has no other name."""

    def run(self) -> list[nodes.Node]:
        """Forget the private module that defines the class."""
        self.options.pop("canonical", None)
        return super().run()


class NameLinks(SphinxPostTransform):
    """Links from names to their pages, before the rules of Python are tried."""

    default_priority = 5

    def run(self, **_: Any) -> None:
        """Replace each name that has a page."""
        objects = self.env.domains.python_domain.objects
        for node in list(self.document.findall(pending_xref)):
            if node.get("refdomain") != "py":
                continue
            name = find_object(objects, node["reftarget"])
            if name is None:
                continue
            entry = objects[name]
            shown = find_pending_xref_condition(node, "resolved")
            content = (shown or node)[0].deepcopy()
            node.replace_self(
                make_refnode(
                    self.app.builder,
                    self.env.docname,
                    entry.docname,
                    entry.node_id,
                    content,
                    name,
                )
            )


def hide_private(_app: Sphinx, _name: str, _class: object, *event: Any) -> None:
    """Leave out base classes that are private."""
    bases: list[type] = event[-1]
    shown = [each for each in bases if not re.search(r"\._", each.__module__)]
    bases[:] = shown or [object]


def skip(_app: Sphinx, _what: str, name: str, *_: object) -> bool | None:
    """Leave out what every frozen value has, and no reader needs."""
    return True if name in {"field_names", "untyped_slots"} else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the parts with Sphinx."""
    app.setup_extension("sphinx.ext.autodoc")
    app.add_role_to_domain("py", "name", PyXRefRole())
    app.add_directive_to_domain("py", "class", PublicClass, override=True)
    app.add_directive_to_domain("py", "exception", PublicClass, override=True)
    app.connect("builder-inited", write_pages)
    app.add_post_transform(NameLinks)
    app.connect("autodoc-process-bases", hide_private)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
