"""Files of other systems, parsed according to their suffixes.

Reading runs no code: tags of YAML and expressions of HCL are kept as text.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, final

from retrykit._internal.extras import needs
from retrykit._internal.validation import safe_repr
from retrykit.config._files import parse_json_value, parse_toml, read_text, syntax_error
from retrykit.config._foreign._document import (
    MOST_LEVELS,
    MOST_VALUES,
    Document,
    Expression,
    Place,
    too_large,
)
from retrykit.errors import ConfigError

__all__ = ["SUFFIXES", "read_document"]


def read_document(path: Path) -> Document:
    """Return the data of a file, whose suffix names its syntax.

    A file with an unknown suffix is read as text.

    Raises:
        ConfigError: The file cannot be read, or is not valid.
        ImportError: The library that reads the syntax is not installed.
    """
    text = read_text(path)
    parse = _PARSERS.get(path.suffix.lower(), _parse_text)
    try:
        return parse(path, text)
    except RecursionError:
        raise too_large(path) from None


def _parse_text(path: Path, text: str) -> Document:
    return Document(str(path), text, {})


def _from_toml(path: Path, text: str) -> Document:
    return Document(str(path), [parse_toml(path, text)], {})


def _from_json(path: Path, text: str) -> Document:
    data = parse_json_value(path, text)
    lines: dict[Place, int] = {}
    with suppress(ImportError, ConfigError):
        # JSON is YAML, whose parser knows the lines.
        lines = _from_yaml(path, text).lines
    if isinstance(data, list):
        # As command-line programs list what there is.
        lines = {place[1:]: line for place, line in lines.items() if place[1:]}
        return Document(str(path), data, lines)
    return Document(str(path), [data], lines)


def _from_yaml(path: Path, text: str) -> Document:
    with needs("yaml"):
        import yaml  # noqa: PLC0415  an extra
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        return _Builder(path, loader).build()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = (mark.line + 1, mark.column + 1) if mark else ()
        raise syntax_error(path, "YAML", str(error.problem), *place) from None
    except yaml.YAMLError as error:
        raise syntax_error(path, "YAML", str(error)) from None
    finally:
        loader.dispose()


@final
class _Builder:
    """Builds the data of a YAML file from its nodes."""

    def __init__(self, path: Path, loader: Any) -> None:
        self.path = path
        self.loader = loader
        self.lines: dict[Place, int] = {}
        # Counts each use of an alias: few lines could stand for more than memory holds.
        self.values = count(1)

    def build(self) -> Document:
        data = [self._build((index,), node) for index, node in enumerate(self._roots())]
        return Document(str(self.path), data, self.lines)

    def _roots(self) -> Iterator[Any]:
        while self.loader.check_node():
            yield self.loader.get_node()

    def _build(self, place: Place, node: Any) -> Any:
        if next(self.values) > MOST_VALUES or len(place) > MOST_LEVELS:
            raise too_large(self.path)
        self.lines[place] = node.start_mark.line + 1
        if node.id == "scalar":
            return self._scalar(node)
        if node.id == "sequence":
            items = enumerate(node.value)
            return [self._build((*place, index), each) for index, each in items]
        keys = [key.value for key, _ in node.value if key.id == "scalar"]
        for index, key in enumerate(keys):
            if key in keys[:index] and key != "<<":
                line = node.value[index][0].start_mark.line + 1
                msg = f"{self.path}, line {line}: {safe_repr(key)} is written twice"
                raise ConfigError(msg, "unreadable-file")
        self.loader.flatten_mapping(node)
        return {
            str(key.value): self._build_member(place, key, value)
            for key, value in node.value
        }

    def _build_member(self, place: Place, key: Any, value: Any) -> Any:
        built = self._build((*place, str(key.value)), value)
        # The line of the key: a table begins on the next one.
        self.lines[*place, str(key.value)] = key.start_mark.line + 1
        return built

    def _scalar(self, node: Any) -> Any:
        if node.tag in _PLAIN:
            try:
                return self.loader.construct_object(node)
            except (KeyError, ValueError):
                # It is not of the type of its tag.
                return str(node.value)
        return Expression(f"{node.tag} {node.value}")


# Dates, and binary data, are not values of settings.
_PLAIN = {
    f"tag:yaml.org,2002:{kind}" for kind in ("bool", "float", "int", "null", "str")
}


def _from_hcl(path: Path, text: str) -> Document:
    with needs("hcl"):
        from retrykit.config._foreign._hcl import parse_hcl  # noqa: PLC0415  an extra
    data, lines = parse_hcl(path, text)
    return Document(str(path), [data], lines)


_PARSERS: dict[str, Callable[[Path, str], Document]] = {
    ".json": _from_json,
    ".tf": _from_hcl,
    ".toml": _from_toml,
    ".yaml": _from_yaml,
    ".yml": _from_yaml,
}
SUFFIXES = (*_PARSERS, ".conf")
"""The suffixes of the files of all formats; ``.conf`` is for Exim."""
