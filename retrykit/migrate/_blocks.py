"""Edits of loops over attempts, such as ``for attempt in Retrying(): ...``."""

from collections.abc import Callable, Iterator
from typing import Final

import libcst as cst
from libcst import matchers

from retrykit.migrate._expressions import OURS, code, names_in, parse
from retrykit.migrate._findings import Untranslatable
from retrykit.migrate._source import Source

__all__ = ["Edit", "Edits", "block_edits", "loop_head"]

Edit = Callable[[cst.CSTNode], cst.CSTNode | cst.RemovalSentinel]
"""Returns what replaces a node, given the node with its parts edited."""

Edits = dict[cst.CSTNode, Edit]
"""Edits, keyed by the node that each changes."""

_NUMBERS: Final = {"retry_state.attempt_number", "num"}


def loop_head(loop: cst.For) -> str:
    """Return the text of the function that makes the attempts of a loop."""
    return f"{OURS}.retrying" if loop.asynchronous is None else f"{OURS}.aretrying"


def block_edits(source: Source, loop: cst.For, *, judges: bool) -> Edits:
    """Return the edits in the body of a loop over attempts.

    Args:
        source: The file.
        loop: The loop.
        judges: Whether the policy judges results.

    Raises:
        Untranslatable: The loop cannot be translated exactly.
    """
    name, before, last, handed = _parts_of(loop)
    if any(name in names_in(each) for each in before):
        raise Untranslatable("it uses the attempt before entering it")
    edits: Edits = {}
    if last.asynchronous is not None:
        edits[last] = lambda node: node.with_changes(asynchronous=None)
    given = handed is not None
    if handed is not None:
        value = _handed_value(handed, name)
        edits |= _moved(last, handed, f"{name}.set_result({code(value)})")
    for use in _uses(source, loop):
        given |= _edit_use(source, use, last, edits)
    if judges and not given:
        raise Untranslatable("it judges results, and its block hands over none")
    return edits


def _parts_of(
    loop: cst.For,
) -> tuple[str, list[cst.BaseStatement], cst.With, cst.If | None]:
    """Return the name of the attempt, and the statements of the loop.

    They are the statements before the attempt's block, the block, and the statement
    after it that hands over the result, or None if there is no such statement.
    """
    body = loop.body
    if not isinstance(loop.target, cst.Name) or not isinstance(body, cst.IndentedBlock):
        raise Untranslatable("its loop has another form")
    if loop.orelse is not None:
        raise Untranslatable("its loop has an else")
    if matchers.findall(body, matchers.Yield()):
        raise Untranslatable("it yields inside an attempt")
    *before, last = body.body
    handed: cst.If | None = None
    if isinstance(last, cst.If) and before and isinstance(before[-1], cst.With):
        handed, last = last, before.pop()
    if not isinstance(last, cst.With) or not _enters(last, loop.target.value):
        raise Untranslatable("code follows the attempt in its loop")
    return loop.target.value, before, last, handed


def _enters(node: cst.With, name: str) -> bool:
    item = node.items[0]
    return (
        len(node.items) == 1
        and isinstance(item.item, cst.Name)
        and item.item.value == name
        and item.asname is None
    )


def _handed_value(node: cst.If, name: str) -> cst.BaseExpression:
    """Return the value that is handed to a successful attempt after its block."""
    test = code(node.test) == f"not {name}.retry_state.outcome.failed"
    lines = node.body.body if isinstance(node.body, cst.IndentedBlock) else ()
    if test and len(lines) == 1 and node.orelse is None:
        [line] = lines
        if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1:
            [only] = line.body
            call = only.value if isinstance(only, cst.Expr) else None
            if (
                isinstance(call, cst.Call)
                and code(call.func) == f"{name}.retry_state.set_result"
                and len(call.args) == 1
            ):
                return call.args[0].value
    raise Untranslatable("code follows the attempt in its loop")


def _moved(block: cst.With, handed: cst.If, line: str) -> Edits:
    """Return the edits that remove *handed*, and add *line* at the end of the block."""

    def append(node: cst.CSTNode) -> cst.CSTNode:
        if not isinstance(node, cst.With) or not isinstance(
            node.body, cst.IndentedBlock
        ):
            raise Untranslatable("its loop has another form")
        added = cst.parse_statement(line)
        body = node.body.with_changes(body=[*node.body.body, added])
        return node.with_changes(body=body, asynchronous=None)

    return {block: append, handed: lambda _node: cst.RemoveFromParent()}


def _uses(source: Source, loop: cst.For) -> Iterator[cst.Name]:
    """Yield the uses of an attempt that may need an edit.

    The ``with`` that enters the attempt does not, nor do the uses in an ``if``
    statement that tests ``outcome.failed``.
    """
    if not isinstance(loop.target, cst.Name):
        return
    for node in source.references(loop.target):
        around = source.parent(node)
        if not isinstance(node, cst.Name) or isinstance(around, cst.WithItem):
            continue
        handed = (
            each
            for each in source.parents(node)
            if isinstance(each, cst.If) and "outcome.failed" in code(each.test)
        )
        if loop in source.parents(node) and next(handed, None) is not None:
            continue
        yield node


def _edit_use(source: Source, use: cst.Name, block: cst.With, edits: Edits) -> bool:
    """Edit one use of an attempt; return whether it hands over a result."""
    whole: cst.CSTNode = use
    around = source.parent(whole)
    while isinstance(around, cst.Attribute) and around.value is whole:
        whole, around = around, source.parent(around)
    path = code(whole).partition(".")[2]
    if path in _NUMBERS:
        edits[whole] = lambda _node: parse(f"{use.value}.number")
        return False
    within = block in source.parents(whole)
    if path == "retry_state.set_result" and within and isinstance(around, cst.Call):
        edits[whole] = lambda _node: parse(f"{use.value}.set_result")
        return True
    raise Untranslatable(
        f"it uses attempt.{path}" if path else "it passes on an attempt"
    )
