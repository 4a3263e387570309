"""Attributes that tenacity adds to functions: `retry_with`, `statistics`, `retry`."""

from collections.abc import Iterator, Sequence
from typing import Final

import libcst as cst

from retrykit.migrate import _tenacity
from retrykit.migrate._expressions import OURS, code, parse
from retrykit.migrate._findings import Untranslatable
from retrykit.migrate._settings import Settings, Use, ordered
from retrykit.migrate._source import Arguments, Source
from retrykit.migrate._usages import Site

__all__ = ["keep_attributes"]

_ATTRIBUTES: Final = ("statistics", "retry", "retry_with")


def keep_attributes(source: Source, sites: Sequence[Site]) -> None:
    """Leave functions decorated by tenacity if attributes that it adds are read.

    A call to ``retry_with`` becomes a call to ``with_policy`` where that is possible,
    and then its function is translated as well.
    """
    for site in sites:
        if site.library != "tenacity" or site.settings is None:
            continue
        reason = _reason(source, site, sites) if site.kind == "function" else ""
        if reason:
            site.leave(reason)


def _reason(source: Source, site: Site, sites: Sequence[Site]) -> str:
    """Return why a function stays decorated by tenacity; empty if it does not.

    The edits of calls to ``retry_with`` are added to the edits of *site*.
    """
    around = source.surroundings
    names = {*_names(source, site.node, set())}
    for name in sorted(names):
        for attribute in _ATTRIBUTES:
            if around.mention(f"{name}.{attribute}"):
                return f"another file reads {name}.{attribute}"
    variable = _shared_decorator(source, site)
    for attribute in _ATTRIBUTES:
        if variable and attribute != "retry" and around.mention(f".{attribute}"):
            return f"another file uses {variable}, and one reads {attribute}"
        for node in source.attributes(attribute):
            owner = code(node.value).rpartition(".")[2]
            if owner not in names or _is_another(source, node.value, site):
                continue
            if attribute != "retry_with" or not _with_policy(source, site, node, sites):
                return f"the file reads {owner}.{attribute}"
    return ""


def _names(source: Source, node: cst.CSTNode, seen: set[cst.CSTNode]) -> Iterator[str]:
    """Yield the names of the functions that a decorator makes.

    The names of variables for the decorator itself are yielded as well.
    """
    around = source.parent(node)
    if node in seen or around is None:
        return
    seen.add(node)
    if isinstance(around, cst.Call) and around.func is node:
        yield from _names(source, around, seen)
    elif isinstance(around, cst.Decorator):
        function = source.parent(around)
        if isinstance(function, cst.FunctionDef):
            yield from _known_as(source, function.name, seen)
    elif isinstance(around, cst.Assign):
        for each in around.targets:
            yield from _known_as(source, each.target, seen)


def _known_as(
    source: Source, target: cst.BaseExpression, seen: set[cst.CSTNode]
) -> Iterator[str]:
    """Yield a target's name, and the names of functions and variables made with it."""
    yield code(target).rpartition(".")[2]
    if isinstance(target, cst.Name):
        for use in source.references(target):
            yield from _names(source, use, seen)


def _shared_decorator(source: Source, site: Site) -> str:
    """Return a decorator's global variable if another file uses it; else empty."""
    around = source.parent(site.node)
    target = around.targets[0].target if isinstance(around, cst.Assign) else None
    if not isinstance(target, cst.Name) or not source.is_global(target):
        return ""
    return target.value if source.surroundings.mention(target.value) else ""


def _is_another(source: Source, node: cst.BaseExpression, site: Site) -> bool:
    """Return whether a name certainly refers to another function."""
    found = source.function(node)
    return not (found is None or site.function is None or found is site.function)


def _with_policy(
    source: Source, site: Site, node: cst.Attribute, sites: Sequence[Site]
) -> bool:
    """Edit a call to ``retry_with``; return whether that was possible."""
    call, function = source.parent(node), site.function
    if not isinstance(call, cst.Call) or function is None:
        return False
    if source.function(node.value) is not function or not function.decorators:
        return False
    # The function that `retry_with` makes lacks what is around the retries.
    outermost = function.decorators[0].decorator is site.node
    if not outermost or sum(each.function is function for each in sites) > 1:
        return False
    changed = _changed_settings(source, site, call)
    if changed is None:
        return False
    named = ", ".join(f"{name}={text}" for name, text in ordered(changed).items())
    text = f"{OURS}.with_policy({code(node.value)}{', ' if named else ''}{named})"
    site.edits[call] = lambda _node: parse(text)
    return True


def _changed_settings(source: Source, site: Site, call: cst.Call) -> Settings | None:
    """Return the settings that ``retry_with`` changes; None if it is untranslatable."""
    old = site.settings or {}
    if "policy" in old:
        return None
    try:
        changed = Arguments(source, call, _tenacity.PARAMETERS)
        if changed.dictionaries:
            return None
        own = site.arguments
        merged = Arguments(source, None, "")
        merged.values = {**({} if own is None else own.values), **changed.values}
        settings = _tenacity.settings(merged, Use("function", None, site.function))
    except Untranslatable:
        return None
    new = {name: text for name, text in settings.items() if old.get(name) != text}
    gone = old.keys() - settings.keys()
    if not gone <= _UNSET.keys():
        return None
    return new | {name: _UNSET[name] for name in gone}


_UNSET: Final = {
    "give_up_on": "()",
    "on_result": "None",
    "max_attempts": "None",
    "max_elapsed": "None",
    "deadline": '"stop"',
    "limits": '"any"',
    "hint": "None",
    "raises": '"last"',
    "observers": "()",
    "stop_event": "None",
    "sleep": "None",
    "name": "None",
}
