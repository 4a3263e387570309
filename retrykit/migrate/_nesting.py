"""Settings for retried calls inside retried calls, and for groups of errors."""

import re
from typing import Final

import libcst as cst
from libcst import matchers

from retrykit.migrate._expressions import code
from retrykit.migrate._findings import Untranslatable
from retrykit.migrate._settings import ordered
from retrykit.migrate._source import Source
from retrykit.migrate._urllib3 import HEAD
from retrykit.migrate._usages import Site
from retrykit.migrate._waits import limit_schedule

__all__ = ["allow_nesting"]

_GROUPS: Final = re.compile(r"\b(?:ExceptionGroup|TaskGroup|open_nursery|except\*)")


def allow_nesting(source: Source, sites: list[Site]) -> None:
    """Add the settings that outer calls, and calls that raise groups of errors, need.

    Other libraries treat neither in a special way: a failed call is retried even if
    calls within it were retried, and an ExceptionGroup is an error like any other.
    Usages that cannot have these settings are left as they are.
    """
    retried = {site.function.name.value for site in sites if site.function is not None}
    grouped = bool(_GROUPS.search(source.text))
    calls: dict[cst.CSTNode, set[str]] = {}
    client = "a request" if any(x.head == HEAD and x.settings for x in sites) else ""
    for site in sites:
        if site.settings is None or "policy" in site.settings or site.head == HEAD:
            continue
        if grouped and site.settings.get("on") != "()":
            site.settings["exception_groups"] = '"whole"'
        inner = (
            _inner_call(source, site, retried, calls) or _below(site, sites) or client
        )
        if not inner:
            continue
        if site.kind == "function" and site.edits:
            # What `retry_with` sets would come beside what is set here.
            site.leave(f"{inner} is retried inside it, and the file reads retry_with")
            continue
        if "max_elapsed" in site.settings:
            # The policy's own limit would also end the delays of the calls within.
            try:
                site.settings = ordered(limit_schedule(site.settings))
            except Untranslatable:
                site.leave(f"{inner} is retried inside it, within its limit of time")
                continue
        site.settings["nested"] = '"retry"'
        site.settings = ordered(site.settings)


def _below(site: Site, sites: list[Site]) -> str:
    """Return the name of a usage's function if a decorator below it retries, too.

    The name is empty if none does.
    """
    function = site.function
    if function is None:
        return ""
    below = any(
        other is not site and other.function is function and other.line > site.line
        for other in sites
    )
    return function.name.value if below else ""


def _inner_call(
    source: Source, site: Site, retried: set[str], calls: dict[cst.CSTNode, set[str]]
) -> str:
    """Return the name of a retried function that is called, perhaps indirectly.

    Empty if there is none.

    Args:
        source: The file.
        site: The usage.
        retried: The names of retried functions.
        calls: A cache of the names that each node calls; it is filled here.
    """
    start: cst.CSTNode | None = site.function
    if start is None:
        loop = source.parent(site.node)
        start = loop.body if isinstance(loop, cst.For) else None
    if start is None:
        return ""
    own = "" if site.function is None else site.function.name.value
    seen, pending = {own}, [start]
    while pending and retried - {own}:
        node = pending.pop()
        if node not in calls:
            calls[node] = _called(node)
        for name in calls[node] - seen:
            seen.add(name)
            if name in retried:
                return name
            pending += [each.body for each in source.functions(name)]
    return ""


def _called(node: cst.CSTNode) -> set[str]:
    """Return the names of the functions and methods that a node calls."""
    found: set[str] = set()
    body = node.body if isinstance(node, cst.FunctionDef) else node
    for call in matchers.findall(body, matchers.Call()):
        if isinstance(call, cst.Call):
            first, _, rest = code(call.func).partition(".")
            if not rest:
                found.add(first)
            elif first in {"self", "cls"} or rest.isidentifier():
                found.add(rest)
    return found
