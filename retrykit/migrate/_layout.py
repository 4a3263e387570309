"""Texts of calls on one or several lines, with the comments of replaced calls."""

from collections.abc import Mapping, Sequence
from typing import Final

import libcst as cst
from libcst import matchers

from retrykit.migrate._expressions import code, parse, shown
from retrykit.migrate._width import WIDTH

__all__ = ["OPENING", "arguments_of", "comments_of", "write_call"]

OPENING: Final = "("
"""Stands for the parameter of a comment after the opening bracket."""

_STEP: Final = "    "


def write_call(  # noqa: PLR0913  they describe one layout
    function: str,
    arguments: Sequence[tuple[str, str]],
    *,
    room: int,
    width: int = WIDTH,
    margin: str = "",
    comments: Mapping[str, Sequence[str]] | None = None,
    exploded: bool = False,
    names: Mapping[str, str] | None = None,
) -> str:
    """Return the text of a call, on one line if it fits.

    Args:
        function: The text of the function.
        arguments: Pairs of a name, empty for a positional argument, and a text.
        room: The columns that are left on the first line.
        width: The maximum line length, in columns.
        margin: The blanks before the last line, relative to the statement.
        comments: Comments above arguments, keyed by name; and comments after the
            opening bracket, with the key `OPENING`.
        exploded: Whether each argument gets a line of its own in any case.
        names: The file's names for names of retrykit.
    """
    texts = [f"{name}={text}" if name else text for name, text in arguments]
    line = f"{function}({', '.join(texts)})"
    comments = comments or {}
    whole = not exploded and not any(comments.values()) and "\n" not in line
    if (whole and len(shown(line, names)) <= room) or not texts:
        return line
    inner = margin + _STEP
    lines = []
    opening = "".join(f"  {comment}" for comment in comments.get(OPENING, ()))
    for (name, _), text in zip(arguments, texts, strict=True):
        lines += [f"{inner}{comment}" for comment in comments.get(name, ())]
        lines.append(f"{inner}{_fitted(text, inner, width, names)},")
    return "\n".join([f"{function}({opening}", *lines, f"{margin})"])


def _fitted(text: str, margin: str, width: int, names: Mapping[str, str] | None) -> str:
    """Return an argument, split over several lines if necessary and possible."""
    lines = f"{margin}{shown(text, names)},".split("\n")
    fits = max(map(len, lines)) <= width
    # A comment in it would be lost.
    if fits or (len(lines) > 1 and "#" in text):
        return text
    name, _, value = text.partition("=") if _is_named(text) else ("", "", text)
    node = parse(value)
    head = f"{name}=" if name else ""
    if isinstance(node, cst.Lambda):
        head += value.strip().removesuffix(code(node.body))
        node = node.body
    links = _links(node)
    if len(links) > _FEW_LINKS:
        return f"\n{margin}".join([f"{head}{links[0]}", *links[1:]])
    items: list[str] = []
    if isinstance(node, cst.Call) and node.args:
        items = [
            code(arg.with_changes(comma=cst.MaybeSentinel.DEFAULT)) for arg in node.args
        ]
        brackets = f"{code(node.func)}(", ")"
    elif isinstance(node, cst.List | cst.Tuple | cst.Dict) and node.elements:
        items = [
            code(each.with_changes(comma=cst.MaybeSentinel.DEFAULT))
            for each in node.elements
        ]
        brackets = _BRACKETS[type(node)]
    else:
        operands = _operands(node)
        if len(operands) == 1:
            return text
        spread = [f"{margin}{_STEP}{each}" for each in operands]
        return "\n".join([f"{head}(", *spread, f"{margin})"])
    inner = margin + _STEP
    spread = [f"{inner}{_fitted(item, inner, width, names)}," for item in items]
    return "\n".join([f"{head}{brackets[0]}", *spread, f"{margin}{brackets[1]}"])


_BRACKETS: Final = {cst.List: ("[", "]"), cst.Tuple: ("(", ")"), cst.Dict: ("{", "}")}


_FEW_LINKS: Final = 2


def _links(node: cst.BaseExpression) -> list[str]:
    """Return the links of a chain of method calls; each after the first has its dot."""
    if not (isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute)):
        return [code(node)]
    before = node.func.value
    if not isinstance(before, cst.Call):
        return [code(node)]
    return [*_links(before), code(node).removeprefix(code(before))]


def _operands(node: cst.BaseExpression) -> list[str]:
    """Return the operands of one operator, which precedes each except the first."""
    if not isinstance(node, cst.BinaryOperation | cst.BooleanOperation) or node.lpar:
        return [code(node)]
    left = node.left
    same = isinstance(left, type(node)) and type(left.operator) is type(node.operator)
    first = _operands(left) if same else [code(left)]
    return [*first, f"{code(node.operator)} {code(node.right)}"]


def _is_named(text: str) -> bool:
    name, equals, rest = text.partition("=")
    return bool(equals) and name.isidentifier() and not rest.startswith("=")


def arguments_of(settings: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return settings as the arguments of a call."""
    return [*settings.items()]


def comments_of(call: cst.Call) -> list[tuple[str, str]]:
    """Return the comments in the brackets of a call, each with its parameter.

    The parameter is the keyword of the argument beside or below the comment, and empty
    for a positional argument, or without arguments. A comment beside the opening
    bracket has `OPENING`: it may be for type checkers or linters.
    """
    found: list[tuple[str, str]] = []
    args = call.args
    if not args:
        return [("", text) for text in _comments(call.whitespace_before_args)]
    names = [arg.keyword.value if arg.keyword else "" for arg in args]
    opening, above = _split(call.whitespace_before_args)
    found += [(OPENING, text) for text in opening]
    found += [(names[0], text) for text in above]
    for index, arg in enumerate(args):
        found += [(names[index], text) for text in _comments(arg.value)]
        found += [(names[index], text) for text in _comments(arg.whitespace_after_arg)]
        if isinstance(arg.comma, cst.Comma):
            beside, below = _split(arg.comma.whitespace_after)
            found += [(names[index], text) for text in beside]
            after = names[min(index + 1, len(names) - 1)]
            found += [(after, text) for text in below]
    return found


def _split(
    blank: cst.BaseParenthesizableWhitespace,
) -> tuple[list[str], list[str]]:
    """Return the comments on the same line, and the comments on the lines below."""
    if not isinstance(blank, cst.ParenthesizedWhitespace):
        return [], []
    beside = _comments(blank.first_line)
    return beside, _comments(blank)[len(beside) :]


def _comments(node: cst.CSTNode) -> list[str]:
    found = matchers.findall(node, matchers.Comment())
    return [each.value for each in found if isinstance(each, cst.Comment)]
