"""Dictionaries of arguments that usages share, which become policies."""

import libcst as cst
from libcst import matchers

from retrykit.migrate._blocks import Edit, Edits
from retrykit.migrate._expressions import OURS, code, names_in, parse
from retrykit.migrate._layout import write_call
from retrykit.migrate._settings import GROUPS, Settings, ordered
from retrykit.migrate._source import Source, dictionary_items
from retrykit.migrate._urllib3 import HEAD
from retrykit.migrate._usages import Site

__all__ = ["share_policies"]


def share_policies(source: Source, sites: list[Site]) -> Edits:
    """Turn dictionaries of arguments into policies, where that is possible.

    The usages take the policy in place of the settings that it has. Usages of other
    dictionaries get the items in their own calls.

    Returns:
        The edits of the dictionaries' assignments.
    """
    edits: Edits = {}
    by_variable: dict[cst.Assign | cst.AnnAssign, list[Site]] = {}
    for site in sites:
        for name in site.dictionaries:
            assignment = source.definition(name)
            if assignment is not None:
                by_variable.setdefault(assignment, []).append(site)
    for assignment, users in by_variable.items():
        shared = _shared(source, assignment, users)
        if not shared:
            continue
        target = _target(assignment)
        for site in users:
            site.base = target.value
            site.settings = {
                name: text
                for name, text in (site.settings or {}).items()
                if name not in shared
            }
        edits[assignment] = _policy(source, assignment, shared)
    return edits


def _target(node: cst.Assign | cst.AnnAssign) -> cst.Name:
    target = node.target if isinstance(node, cst.AnnAssign) else node.targets[0].target
    if not isinstance(target, cst.Name):
        raise TypeError(type(target))
    return target


def _shared(
    source: Source, assignment: cst.Assign | cst.AnnAssign, users: list[Site]
) -> Settings:
    """Return the settings of the policy that a dictionary becomes; empty if none."""
    target = _target(assignment)
    used_elsewhere = source.is_global(target) and source.surroundings.mention(
        target.value
    )
    if used_elsewhere or assignment.value is None:
        return {}
    translated = all(
        site.settings is not None
        and "policy" not in site.settings
        and len(site.dictionaries) == 1
        and site.head not in {f"{OURS}.Policy", HEAD}
        for site in users
    )
    if not translated or len(source.references(target)) != len(users):
        return {}
    first, *others = (site.settings or {} for site in users)
    same = {
        name: text
        for name, text in first.items()
        if all(each.get(name) == text for each in others)
    }
    for group in GROUPS:
        held = {
            name for site in users for name in (site.settings or {}) if name in group
        }
        if not held <= same.keys():
            same = {name: text for name, text in same.items() if name not in group}
    known = _names_at(source, assignment)
    return ordered(
        {
            name: text
            for name, text in same.items()
            if name != "nested" and names_in(parse(text)) - _OURS <= known | _free(text)
        }
    )


_OURS = {OURS}


def _free(text: str) -> set[str]:
    """Return the names of the attributes, parameters and keywords in a text."""
    node = parse(text)
    found: set[str] = set()
    for kind, part in (("Attribute", "attr"), ("Param", "name"), ("Arg", "keyword")):
        for each in matchers.findall(node, getattr(matchers, kind)()):
            name = getattr(each, part)
            found |= {name.value} if isinstance(name, cst.Name) else set()
    return found


def _names_at(source: Source, assignment: cst.Assign | cst.AnnAssign) -> set[str]:
    """Return the names that the items of a dictionary use, and some built-in names."""
    value = assignment.value
    items = None if value is None else dictionary_items(source, value)
    found = {"Exception", "isinstance", "str", "bool", "None", "True", "False"}
    for item in (items or {}).values():
        found |= names_in(item)
    return found


def _policy(
    source: Source, assignment: cst.Assign | cst.AnnAssign, settings: Settings
) -> Edit:
    target = _target(assignment)
    old = assignment.value
    column = source.column(assignment)[0]
    exploded = old is not None and "\n" in code(old)

    def edit(node: cst.CSTNode) -> cst.CSTNode:
        text = write_call(
            f"{OURS}.Policy",
            [*settings.items()],
            room=source.surroundings.width - column - len(target.value) - 3,
            width=source.surroundings.width,
            exploded=exploded and len(settings) > 1,
            names=source.names,
        )
        if isinstance(node, cst.AnnAssign):
            equal = cst.Assign(targets=[cst.AssignTarget(target)], value=parse(text))
            return equal.with_changes(semicolon=node.semicolon)
        return node.with_changes(value=parse(text))

    return edit
