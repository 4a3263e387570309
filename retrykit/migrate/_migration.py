"""The migration of a file: its usages translated, its imports fixed."""

from collections.abc import Callable

import libcst as cst

from retrykit.migrate._attributes import keep_attributes
from retrykit.migrate._blocks import Edit, Edits
from retrykit.migrate._comments import with_comment, without_comment
from retrykit.migrate._dictionaries import share_policies
from retrykit.migrate._errors import migrate_errors
from retrykit.migrate._expressions import OURS, check_depth, names_in, parse
from retrykit.migrate._findings import Migration, Usage
from retrykit.migrate._imports import settle_imports
from retrykit.migrate._nesting import allow_nesting
from retrykit.migrate._source import Source, Surroundings, imports_library
from retrykit.migrate._usages import Site, find_sites, leave_shared

__all__ = ["migrate_text"]


def migrate_text(text: str, surroundings: Surroundings | None = None) -> Migration:
    """Translate the usages of other libraries in a file.

    A text that imports none of them is returned as it is, without being parsed.

    Args:
        text: The text of the file.
        surroundings: The other files of its project; by default there are none.

    Raises:
        SyntaxError: The text is not Python.
        RecursionError: The program is too deeply nested.
    """
    if not imports_library(text):
        return Migration(text, text, ())
    check_depth(text)
    source = Source(text, surroundings)
    sites = find_sites(source)
    editing = _Editing(_find_edits(source, sites))
    after = source.module.visit(editing).code
    if OURS in after:
        used, width = _names_used(source), source.surroundings.width
        settled, source.names = settle_imports(after, used, width)
        if any(full.rpartition(".")[2] != x for full, x in source.names.items()):
            # Longer names may need more lines.
            again = source.module.visit(editing).code
            settled, _ = settle_imports(again, used, width)
        after = settled
    usages = [Usage(site.line, site.library, site.reason) for site in sites]
    return Migration(text, after, tuple(sorted(usages, key=lambda usage: usage.line)))


def _find_edits(source: Source, sites: list[Site]) -> dict[cst.CSTNode, list[Edit]]:
    """Return the edits of each node in a file, in the order to apply them."""
    edits: dict[cst.CSTNode, list[Edit]] = {}

    def add(found: Edits) -> None:
        for node, edit in found.items():
            edits.setdefault(node, []).append(edit)

    keep_attributes(source, sites)
    add(_settle(source, sites))
    add(share_policies(source, sites))
    for site in sites:
        if site.settings is not None:
            add({site.node: _replacing(site)})
            add(site.edits)
    for anchor in {site.anchor: None for site in sites}:
        add({anchor: _commenting(source, anchor, sites)})
    for node in _obsolete(source, sites):
        add({node: lambda _node: cst.RemoveFromParent()})
    return edits


def _settle(source: Source, sites: list[Site]) -> Edits:
    """Leave each usage as it is if it depends on another one that is left.

    Returns:
        The edits of the libraries' errors, such as ``RetryError``.
    """
    while True:
        before = _count_left(sites)
        edits = migrate_errors(source, sites)
        allow_nesting(source, sites)
        leave_shared(sites)
        if _count_left(sites) == before:
            return edits


def _count_left(sites: list[Site]) -> int:
    return sum(site.settings is None for site in sites)


class _Editing(cst.CSTTransformer):
    """Applies edits to the nodes of a file."""

    def __init__(self, edits: dict[cst.CSTNode, list[Edit]]) -> None:
        super().__init__()
        self._edits = edits

    def on_leave(  # type: ignore[override]
        self, original_node: cst.CSTNode, updated_node: cst.CSTNode
    ) -> cst.CSTNode | cst.RemovalSentinel:
        edited: cst.CSTNode | cst.RemovalSentinel = updated_node
        for edit in self._edits.get(original_node, ()):
            if isinstance(edited, cst.CSTNode):
                edited = edit(edited)
        return edited


def _replacing(site: Site) -> Edit:
    return lambda node: site.written().with_changes(
        lpar=getattr(node, "lpar", ()), rpar=getattr(node, "rpar", ())
    )


def _commenting(
    source: Source, anchor: cst.CSTNode, sites: list[Site]
) -> Callable[[cst.CSTNode], cst.CSTNode]:
    """Return an edit that writes above a statement why its usages are left.

    It removes the comments of an earlier run.
    """
    reasons = dict.fromkeys(
        site.reason
        for site in sites
        if site.anchor is anchor and site.reason is not None
    )
    column, width = source.column(anchor)[0], source.surroundings.width

    def edit(node: cst.CSTNode) -> cst.CSTNode:
        lines = getattr(node, "leading_lines", None)
        if lines is None:
            return node
        kept = without_comment(lines)
        if reasons:
            kept = with_comment(kept, "; ".join(filter(None, reasons)), column, width)
        return (
            node
            if len(kept) == len(lines) and not reasons
            else node.with_changes(leading_lines=kept)
        )

    return edit


def _obsolete(source: Source, sites: list[Site]) -> list[cst.CSTNode]:
    """Return the assignments of strategies and arguments that are no longer needed."""
    translated = [site for site in sites if site.settings is not None]
    texts = {site.base or "" for site in translated}
    for site in translated:
        for text in (site.settings or {}).values():
            texts |= names_in(parse(text))
    replaced: set[cst.CSTNode] = {site.node for site in translated}
    found: list[cst.CSTNode] = []
    for name, assignment in source.constants():
        if name.value in texts or source.surroundings.mention(name.value):
            continue
        uses = source.references(name)
        inside = (any(x in replaced for x in source.parents(use)) for use in uses)
        if uses and all(inside):
            found.append(assignment)
    return found


def _names_used(source: Source) -> set[str]:
    """Return the names of the variables and imports that a file reads."""
    found: set[str] = set()
    for scope in source.all_scopes():
        for assignment in scope.assignments:
            if assignment.references:
                found.add(assignment.name)
    return found
