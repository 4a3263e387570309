"""Tables of a document, which know where they are and which of their keys were read."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, TypeVar, cast, final, overload

from retrykit._conditions import Condition
from retrykit._internal.validation import (
    did_you_mean,
    invalid_setting,
    prefix_errors,
    safe_repr,
)
from retrykit.config._foreign._document import Document, Expression, Place
from retrykit.errors import ConfigError

__all__ = ["Remarks", "Section", "camel", "sections_of", "spelled", "string_at"]

T = TypeVar("T")
D = TypeVar("D")


@final
class Remarks:
    """Remarks on a policy that is read.

    Attributes:
        document: The document that the policy is in.
        differences: What the policy does differently from the system.
        notes: What the reader of a policy may not expect, such as which of two
            settings applies.
        errors: The conditions that the user gave for names of errors.
        located: The first error that has been given its place; None if there is none.
    """

    def __init__(self, document: Document, errors: Mapping[str, Condition]) -> None:
        self.document = document
        self.differences: list[str] = []
        self.notes: list[str] = []
        self.errors = errors
        self.located: ConfigError | None = None


@final
class Section:
    """A table of a document, which knows which of its keys have been read.

        section = Section(remarks, place, data)
        retries = section.get("num_retries", whole(0), 1)
        section.ignore("retry_priority")
        section.finish()

    Attributes:
        remarks: The remarks on the policy that is read.
        document: The document.
        place: Where the table is in the document.
        data: The keys and values of the table.
        parent: The table around it; None if there is none, or it is not known.
    """

    def __init__(
        self,
        remarks: Remarks,
        place: Place,
        data: Mapping[str, Any],
        spell: Callable[[str], str] = str,
        parent: "Section | None" = None,
    ) -> None:
        self.parent = parent
        self.document = remarks.document
        self.place = place
        self.data = data
        self.remarks = remarks
        self._spell = spell
        # By their spelling: the keys that the system knows, and the keys that are
        # there.
        self._known: dict[str, str] = {}
        self._keys: dict[str, str] = {}
        for key in data:
            other = self._keys.setdefault(spell(key), key)
            if other != key:
                rule = f"written once, got it as {other} as well"
                raise invalid_setting(key, rule, data[key])

    def __contains__(self, key: str) -> bool:
        return self._value(key) is not None

    @overload
    def get(self, key: str, parse: Callable[[str, Any], T]) -> T | None: ...
    @overload
    def get(self, key: str, parse: Callable[[str, Any], T], default: D) -> T | D: ...
    def get(
        self, key: str, parse: Callable[[str, Any], Any], default: Any = None
    ) -> Any:
        """Return a parsed value; the default if the value is absent or null."""
        value = self._value(key)
        if value is None:
            return default
        with self.located(key):
            name = self._written(key)
            if isinstance(value, str) and (written := _placeholder(value)):
                suggestion = "a reader of files cannot know what it stands for"
                raise invalid_setting(
                    name, "written out", written, suggestion, code="not-expressible"
                )
            return parse(name, value)

    def require(self, key: str, parse: Callable[[str, Any], T]) -> T:
        """Return a parsed value that must be there."""
        if key not in self:
            with self.located():
                rule = f"a table with {key}"
                suggestion = did_you_mean(key, map(str, self.data))
                raise invalid_setting(self._name(), rule, [*self.data], suggestion)
        return cast("T", self.get(key, parse))

    def section(self, key: str) -> "Section | None":
        """Return the table at a key; None if the value is absent or null."""
        found = self.sections(key)
        if len(found) > 1:
            with self.located(key):
                raise invalid_setting(key, "one table", self._value(key))
        return found[0] if found else None

    def sections(self, key: str) -> "list[Section]":
        """Return the tables in the list at a key, or the single table there.

        Empty if the value is absent or null.
        """
        value = self._value(key)
        if value is None:
            return []
        name = self._written(key)
        place = (*self.place, name)
        several = isinstance(value, list)
        found: list[Section] = []
        for index, each in enumerate(value if several else [value]):
            if not isinstance(each, Mapping):
                with self.located(key):
                    raise invalid_setting(name, "a table", each)
            at = (*place, index) if several else place
            found.append(self._inner(at, each))
        return found

    def tables(self) -> "Iterator[tuple[str, Section]]":
        """Yield the tables in this one and in its lists, at any level, with their keys.

        The keys in the tables count as unread.
        """
        for key, value in self.data.items():
            several = isinstance(value, list)
            for index, each in enumerate(value if several else [value]):
                if isinstance(each, Mapping):
                    at = (*self.place, key, index) if several else (*self.place, key)
                    inner = self._inner(at, each)
                    yield key, inner
                    yield from inner.tables()

    def respelled(self, spell: Callable[[str], str]) -> "Section":
        """Return this table as if no key had been read, with keys in any spelling.

        Args:
            spell: Returns the same text for all spellings of a key.
        """
        return Section(self.remarks, self.place, self.data, spell, self.parent)

    def unread(self, errors: Mapping[str, Condition]) -> "Section":
        """Return this table as if no key had been read, with new remarks."""
        remarks = Remarks(self.document, errors)
        return Section(remarks, self.place, self.data, self._spell, self.parent)

    def _inner(self, place: Place, data: Mapping[str, Any]) -> "Section":
        return Section(self.remarks, place, data, self._spell, self)

    def ignore(self, *keys: str) -> None:
        """Accept keys that have no effect on retries."""
        self._known.update((self._spell(key), key) for key in keys)

    def finish(self) -> None:
        """Raise a ConfigError if a key of the table was neither read nor ignored."""
        for key, written in self._keys.items():
            if key not in self._known:
                with self.located(written):
                    known = sorted(self._known.values())
                    suggestion = did_you_mean(written, known)
                    suggestion = suggestion or f"the keys are {', '.join(known)}"
                    shown = safe_repr(written)
                    msg = f"{self._name()} has no key {shown}; {suggestion}"
                    raise ConfigError(msg, "unknown-name")

    def differs(self, key: str, text: str) -> None:
        """Record what the policy does differently from the system because of a key."""
        self.remarks.differences.append(f"{self.where(key)}: {text}")

    def note(self, key: str, text: str) -> None:
        """Record what the reader of the policy may not expect about a key."""
        self.remarks.notes.append(f"{self.where(key)}: {text}")

    def where(self, key: str) -> str:
        """Return the place of a key, for people: file, line and name, where known."""
        place = (*self.place, self._written(key))
        line = self.document.lines.get(place) or self.document.lines.get(self.place)
        if line:
            # The line says where it is.
            return f"{self.document.name}, line {line}: {_dotted(_end(place))}"
        at = self.document.name
        return f"{at}: {_dotted(place)}" if at else _dotted(place)

    @contextmanager
    def located(self, key: str | None = None) -> Iterator[None]:
        """Put the place of a key, or of the table, before errors raised in the block.

        An error that has its place already is raised as it is.
        """
        lines, place = self.document.lines, self.place
        line = lines.get((*place, self._written(key)) if key else place)
        line = line or lines.get(place)
        at = f"line {line}" if line else _dotted(place)
        at = ", ".join(filter(None, (self.document.name, at)))
        try:
            with prefix_errors(at) if at else nullcontext():
                yield
        except ConfigError as error:
            # Once: the place of a key is more precise than its table's.
            self.remarks.located = self.remarks.located or error
            raise self.remarks.located from None

    def _value(self, key: str) -> Any:
        self.ignore(key)
        return self.data.get(self._written(key))

    def _written(self, key: str) -> str:
        """Return a key as it is written in the document."""
        return self._keys.get(self._spell(key), key)

    def _name(self) -> str:
        names = [each for each in self.place if isinstance(each, str)]
        return names[-1] if names else "the document"


def sections_of(document: Document, errors: Mapping[str, Condition]) -> list[Section]:
    """Return the tables in a file.

    They are its documents, and the items of documents that are lists. A file that is
    text becomes a table with the key ``text``.
    """
    data = document.data
    documents = [{"text": data}] if isinstance(data, str) else data
    found: list[tuple[Place, Any]] = [((n,), each) for n, each in enumerate(documents)]
    for place, each in found:
        # A document may be a list of tables.
        if isinstance(each, list) and len(place) == 1:
            found += [((*place, index), x) for index, x in enumerate(each)]
    return [
        Section(Remarks(document, errors), place, data)
        for place, data in found
        if isinstance(data, Mapping)
    ]


def spelled(key: str) -> str:
    """Return a key in lower case without - and _: maxattempts for max-attempts."""
    return re.sub("[-_]", "", key).lower()


def string_at(data: Mapping[str, Any], key: str) -> str:
    """Return the string at a key of a table; empty if there is none."""
    value = data.get(key)
    return value if isinstance(value, str) else ""


def camel(key: str) -> str:
    """Return a key in camel case: maxAttempts for max_attempts."""
    return re.sub("_(.)", lambda match: match[1].upper(), key)


def _placeholder(value: str) -> str:
    written = isinstance(value, Expression) or _PLACEHOLDER.search(value)
    return str(value) if written else ""


# Placeholders of Spring and Terraform, and of Argo and Helm.
_PLACEHOLDER = re.compile(r"\$\{|\{\{")


def _end(place: Place) -> Place:
    """Return the end of a place, from its last name but one, after an empty part.

    >>> _end((0, "routes", 1, "retry_policy"))
    ('', 'routes', 1, 'retry_policy')
    """
    names = [index for index, each in enumerate(place) if isinstance(each, str)]
    return ("", *place[names[-2:][0] :])


def _dotted(place: Iterable[str | int]) -> str:
    """Return a place as text, without the number of the document.

    >>> _dotted((0, "routes", 1, "retry_policy"))
    'routes[1].retry_policy'
    """
    parts = [f"[{each}]" if isinstance(each, int) else f".{each}" for each in place]
    return "".join(parts[1:]).lstrip(".")
