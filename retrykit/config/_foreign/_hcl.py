"""HCL, the language of Terraform, as the data of its JSON syntax.

A block is a table under its type and its labels. Blocks without labels are a list, and
so are blocks with the same type and labels.
"""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, final

import hcl2
from lark import Tree, UnexpectedInput

from retrykit._internal.validation import invalid_setting, safe_repr, truncate
from retrykit.config._files import syntax_error
from retrykit.config._foreign._document import (
    MOST_LEVELS,
    MOST_VALUES,
    Expression,
    Place,
    too_large,
)
from retrykit.errors import ConfigError

__all__ = ["parse_hcl"]


def parse_hcl(path: Path, text: str) -> tuple[dict[str, Any], dict[Place, int]]:
    """Return the data of a text in HCL, and the lines of its values.

    Strings, numbers, true, false, null, lists and objects are values; everything else
    is an `Expression`. Nothing is computed.

    Raises:
        ConfigError: The text is not valid, or too large.
    """
    if len(text) > _MOST_CHARACTERS:
        rule = f"at most {_MOST_CHARACTERS} characters of HCL"
        raise invalid_setting(str(path), rule, len(text), code="unreadable-file")
    try:
        tree = hcl2.parses_to_tree(text)
    except UnexpectedInput as error:
        token = str(getattr(error, "token", "")).strip().partition("\n")[0]
        reason = f"unexpected {truncate(safe_repr(token), 60)}"
        reason = reason if token else "the text ends too early"
        raise syntax_error(path, "HCL", reason, error.line, error.column) from None
    builder = _Builder(path, text)
    return builder.fill((0,), {}, tree.children[0]), builder.lines


# The library takes about 4 s for as many.
_MOST_CHARACTERS = 200_000


@final
class _Builder:
    """Builds the data of a text from its syntax tree."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.text = text
        self.lines: dict[Place, int] = {(0,): 1}
        self.values = count(1)

    def fill(self, place: Place, data: dict[str, Any], body: Any) -> dict[str, Any]:
        """Put the attributes and the blocks of a body into *data*, and return that."""
        nodes = [*_significant(body)]
        blocks = {id(node): _names(node) for node in nodes if node.data == "block"}
        times = Counter(blocks.values())
        for node in nodes:
            if node.data == "attribute":
                self._put(place, data, _name(node.children[0]), node.children[2])
            else:
                names = blocks[id(node)]
                self._put_block(place, data, node, names, times[names] > 1)
        return data

    def _put_block(
        self,
        place: Place,
        data: Any,
        node: Any,
        names: tuple[str, ...],
        repeated: bool,  # noqa: FBT001
    ) -> None:
        several = repeated or len(names) == 1
        for index, name in enumerate(names, start=1):
            if not isinstance(data, dict):
                raise self._twice(name, node)
            last = index == len(names)
            place = (*place, name)
            self.lines.setdefault(place, node.meta.line)
            data = data.setdefault(name, [] if last and several else {})
        if isinstance(data, list) != several:
            raise self._twice(names[-1], node)
        if several:
            place = (*place, len(data))
            data.append({})
            data = data[-1]
        self._locate(place, node)
        self.fill(place, data, node.children[-2])

    def _put(self, place: Place, data: dict[str, Any], key: str, node: Any) -> None:
        if key in data:
            raise self._twice(key, node)
        data[key] = self._value((*place, key), node)

    def _locate(self, place: Place, node: Any) -> None:
        if next(self.values) > MOST_VALUES or len(place) > MOST_LEVELS:
            raise too_large(self.path)
        self.lines[place] = node.meta.line

    def _twice(self, key: str, node: Any) -> ConfigError:
        at = f"{self.path}, line {node.meta.line}"
        message = f"{at}: {safe_repr(key)} is written twice"
        return ConfigError(message, "unreadable-file")

    def _value(self, place: Place, node: Any) -> Any:
        self._locate(place, node)
        term = _term(node)
        if term.data == "tuple":
            items = enumerate(_significant(term))
            return [self._value((*place, index), each) for index, each in items]
        if term.data == "object":
            data: dict[str, Any] = {}
            for element in _significant(term):
                key, _, value = element.children
                self._put(place, data, self._key(key.children[0]), value)
            return data
        return self._scalar(node, term)

    def _key(self, node: Any) -> str:
        """Return an object's key, which may be a bare name."""
        term = _term(node)
        if term.data in {"identifier", "keyword", "string"}:
            return _name(term)
        return self._text(node)

    def _scalar(self, node: Any, term: Any) -> Any:
        written = self._text(node)
        if term.data == "literal_value":
            return _LITERALS[written]
        if re.fullmatch(r"-?[0-9]{1,300}", written):
            return int(written)
        if re.fullmatch(_FLOAT, written):
            return float(written)
        plain = _plain(term) if term.data == "string" else None
        return Expression(written) if plain is None else plain

    def _text(self, node: Any) -> str:
        return self.text[node.meta.start_pos : node.meta.end_pos].strip()


_FLOAT = r"-?[0-9]{1,300}(?:\.[0-9]{1,300})?(?:[eE][-+]?[0-9]{1,9})?"
_LITERALS = {"true": True, "false": False, "null": None}


def _term(node: Any) -> Any:
    """Return the only part of an expression, or else the expression itself."""
    first = node.children[0]
    only = node.data == "expr_term" and isinstance(first, Tree)
    return first if only else node


def _significant(node: Any) -> Iterator[Any]:
    """Yield the parts of a syntax tree without punctuation, new lines and comments."""
    for each in node.children:
        if isinstance(each, Tree) and each.data != "new_line_or_comment":
            yield each


def _names(block: Any) -> tuple[str, ...]:
    """Return the type and the labels of a block."""
    return tuple(_name(each) for each in _significant(block) if each.data != "body")


def _name(node: Any) -> str:
    """Return a name, which may be written as a string."""
    plain = _plain(node) if node.data == "string" else None
    return "".join(map(str, node.scan_values(bool))) if plain is None else plain


def _plain(string: Any) -> str | None:
    """Return the text of a string; None if a part must be computed."""
    parts = [each.children[0] for each in _significant(string)]
    if any(isinstance(each, Tree) for each in parts):
        return None
    texts = [
        part[1:] if part.type.startswith("ESCAPED") else _unescape(part)
        for part in parts
    ]
    return "".join(texts)


def _unescape(text: str) -> str:
    return _ESCAPE.sub(_character, text)


_ESCAPE = re.compile(r'\\(?:([nrt"\\])|u([0-9a-fA-F]{4})|U(000[0-9a-fA-F]{5}))')


def _character(match: re.Match[str]) -> str:
    sign, short, long = match.groups()
    return _SIGNS.get(sign, sign) if sign else chr(int(short or long, 16))


_SIGNS = {"n": "\n", "r": "\r", "t": "\t"}
