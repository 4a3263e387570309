"""Translation of tenacity's and retrying's `RetryError` and `TryAgain`."""

import libcst as cst
from libcst import matchers

from retrykit.migrate import _tenacity
from retrykit.migrate._blocks import Edit, Edits
from retrykit.migrate._expressions import OURS, code, parse
from retrykit.migrate._source import Source
from retrykit.migrate._usages import Site

__all__ = ["migrate_errors"]

_LIBRARIES = {"tenacity", "retrying"}


def migrate_errors(source: Source, sites: list[Site]) -> Edits:
    """Return the edits that replace errors of tenacity and retrying.

    Usages whose errors cannot be replaced are left as they are, for example if a file
    reads details of such an error.
    """
    edits: Edits = {}
    for library in _LIBRARIES:
        mine = [x for x in sites if x.library == library]
        again = source.find({(library, "TryAgain")})
        if source.surroundings.mention("raise TryAgain"):
            for site in mine:
                site.leave("another file raises TryAgain for its callers")
        elif again and mine:
            edits |= _try_again(source, mine, again)
        edits |= _retry_errors(source, library, mine)
    return edits


def _raises(site: Site) -> bool:
    """Return whether a usage may raise the RetryError of its library."""
    if site.settings is not None:
        has_results = "on_result" in site.settings and "fallback" not in site.settings
        return "raises" in site.settings or "policy" in site.settings or has_results
    return True


def _retry_errors(source: Source, library: str, sites: list[Site]) -> Edits:
    uses = source.find({(library, "RetryError")})
    around = source.surroundings
    if around.mention("RetryError") and around.mention("last_attempt"):
        _leave_all(sites, "another file reads the last_attempt of a RetryError")
        return {}
    elsewhere = around.mention(library)
    translated = any(site.settings and _raises(site) for site in sites)
    if not uses or not (translated or elsewhere):
        return {}
    caught = [_handler(source, use) for use in uses]
    if any(each is None for each in caught):
        if not translated:
            return {}
        _leave_all(sites, "the file uses RetryError for more than to catch it")
        return {}
    mixed = any(site.settings is None for site in sites)
    mixed |= elsewhere and library not in around.complete
    edits: Edits = {}
    for use, handler in zip(uses, caught, strict=True):
        read = None if handler is None else _reads(handler, library)
        if read is None:
            _leave_all(sites, f"the file reads a RetryError of {library}")
            return {}
        edits |= read
        edits[use] = _renamed(source, use, mixed=mixed)
    return edits


def _leave_all(sites: list[Site], reason: str) -> None:
    for site in sites:
        if site.settings is not None and _raises(site):
            site.leave(reason)


def _handler(source: Source, use: cst.CSTNode) -> cst.ExceptHandler | None:
    """Return the ``except`` clause that catches the named error; None if none does."""
    child: cst.CSTNode = use
    for each in source.parents(use):
        if isinstance(each, cst.ExceptHandler):
            return each if each.type is child else None
        if not isinstance(each, cst.Tuple | cst.Element):
            return None
        child = each
    return None


def _reads(handler: cst.ExceptHandler, library: str) -> Edits | None:
    """Return the edits of the error's attributes that a handler reads.

    None if the handler reads an attribute without a counterpart.
    """
    if handler.name is None:
        return {}
    name = cst.ensure_type(handler.name.name, cst.Name).value
    pattern = matchers.Attribute(value=matchers.Name(name))
    edits: Edits = {}
    for node in matchers.findall(handler.body, pattern):
        attribute = cst.ensure_type(node, cst.Attribute).attr.value
        if attribute == "last_attempt" and library == "tenacity":
            edits[node] = _replaced(f"{_tenacity.ADAPTERS}.last_attempt({name})")
        elif attribute not in _OF_EVERY_ERROR:
            return None
    return edits


def _replaced(text: str) -> Edit:
    return lambda _node: parse(text)


_OF_EVERY_ERROR = {"__cause__", "add_note", "with_traceback", "__traceback__"}


def _renamed(source: Source, use: cst.BaseExpression, *, mixed: bool) -> Edit:
    def edit(_node: cst.CSTNode) -> cst.CSTNode:
        if not mixed:
            return parse(f"{OURS}.RetryError")
        within = isinstance(source.parent(use), cst.Element)
        both = f"{code(use)}, {OURS}.RetryError"
        return parse(f"*({both})" if within else f"({both})")

    return edit


def _try_again(
    source: Source, sites: list[Site], uses: list[cst.BaseExpression]
) -> Edits:
    """Return the edits that turn ``raise TryAgain`` into ``raise RetryAfter``.

    If they are not possible everywhere, all usages are left as they are.
    """
    raised = all(_is_raised(source, use) for use in uses)
    # Otherwise it may be raised at the end, and caught by a caller.
    hidden = all(
        {"raises", "fallback"} & site.settings.keys()
        or site.settings.get("max_attempts") == "None"
        for site in sites
        if site.settings is not None
    )
    if not (raised and hidden) or any(site.settings is None for site in sites):
        for site in sites:
            site.leave("the file raises TryAgain, which stays tenacity's")
        return {}
    return {use: lambda _node: parse(f"{OURS}.RetryAfter") for use in uses}


def _is_raised(source: Source, use: cst.CSTNode) -> bool:
    around = source.parent(use)
    if isinstance(around, cst.Call) and not around.args:
        around = source.parent(around)
    return isinstance(around, cst.Raise)
