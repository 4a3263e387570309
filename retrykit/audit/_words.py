"""Words that show, without parsing a file, whether it may retry anything.

Most sites are calls to a library that retries, or loops that contain a ``try`` and
wait, count, or mention attempts. A file with such a call imports the library and
uses one of its names, or calls something whose name or keyword mentions retries, such
as a subclass in another file. Annotations, definitions, and arguments such as
``retry=retry``, whose value comes from elsewhere, say nothing.

A file without these words is taken to have no site, and is parsed only if a site of
another file refers to a name that it defines. So a loop that repeats a call for its
result may be missed, if it has no ``try`` and its first line does not mention retries.

Files are not trusted: no pattern may start at each character of a long word or line and
search to its end, which takes quadratic time.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Final

__all__ = ["Interest", "has_loop", "has_retry_call"]

_ROOTS: Final = (b"retr", b"backoff", b"attempts", b"tries")
_CALLS: Final = tuple(
    re.compile(word + rb"\w{0,80}\s{0,80}(?:\(|=(?!=))")
    for word in (rb"retr(?:y|ies)", b"backoff", b"attempts", rb"tries(?<!entries)")
)
_DEFINED: Final = re.compile(rb"\b(?:def|class)[ \t]+\w*\Z")
_NAME: Final = re.compile(rb"\w*\Z")
_NAMES: Final = re.compile(rb"[ \t]+[\w, \t]*(?:#.*)?")
_NEAR: Final = 100
"""How much of the text before a word is looked at, in bytes."""
_MOST_PASSED: Final = 20
"""The most names whose imports are looked for."""
_DECORATOR: Final = re.compile(rb"\n[ \t\f]*@[\w. \t]*(?:retr|backoff)")
# What stands before or after the name of something that is used.
_GIVEN: Final = re.compile(rb"(?:[=(,@]|\b(?:else|in|or|return)\b)\s*(?:\w+\.)*\Z")
_USED: Final = re.compile(rb"\s{0,80}(?:\(|\\|as\b)")
_STATEMENT: Final = re.compile(
    rb"\n([ \t\f]*)(?:async[ \t\\\n]+)?(for|while|try|def|class)\b"
)
_RETRIES: Final = re.compile(
    rb"retr(?:y|ies)|attempt|tries|back_?off|sleep|delay|pause|(?<!a)wait|cool"
    rb"|\n[ \t]*except\b[^\n]*(?:connect|timeout|timedout|unavailable|urlerror|throttl"
    rb"|(?:network|transport|request)(?:error|exception))"
)
_HEAD: Final = re.compile(
    rb"[^\n]{0,200}?(?:retry|retries|attempt|tries)", re.IGNORECASE
)
_TRIES: Final = (b"try", b"tries", b"attempt", b"TRIES", b"ATTEMPT")
_LEAVES: Final = re.compile(rb"\b(?:break|return)\b")
_COUNTS: Final = re.compile(
    rb"\n\s*(?:async\s+)?for\b(?:.|\n)*?"
    rb"(?:range|count|repeat|\bin\s*[(\[]|\bin\b[^:(\[{]{0,200},"
    rb"|(?P<end>:[ \t]*(?:#.*)?\n))"
)
_DEEPEST: Final = 20
"""The deepest nesting of loops that Python compiles. Files with deeper loops are not
searched, since each loop may be as long as the file."""


class Interest:
    """A test, by words, of whether a file may have a site.

    Args:
        words: For each library, words that mark its sites; a file without any of them
            has none.
    """

    def __init__(self, words: Mapping[str, frozenset[str]]) -> None:
        libraries = "|".join(re.escape(each) for each in sorted(words) if words[each])
        self._imports = re.compile(
            rb"\n[ \t\f]*(?:from|import)\b[^\n]*?\b(" + libraries.encode() + rb")\b"
        )
        self._words = {each.encode(): words[each] for each in words}

    def __call__(self, source: bytes) -> bool:
        r"""Return whether a file may have a site.

        Args:
            source: Its text, in an encoding that extends ASCII, in lines that end in
                ``\n``.
        """
        text = b"\n" + source
        return self._calls_library(text) or has_retry_call(text) or has_loop(text)

    def _calls_library(self, text: bytes) -> bool:
        imported = {each[1] for each in self._imports.finditer(text)}
        return any(
            _is_used(found)
            for each in imported
            for found in _any_of(self._words[each]).finditer(text)
        )


@cache
def _any_of(words: frozenset[str]) -> re.Pattern[bytes]:
    # Compiled late, since few files import any one of the libraries.
    pattern = "|".join(map(re.escape, sorted(words)))
    return re.compile(rf"\b(?:{pattern})\b".encode())


def _is_used(found: re.Match[bytes]) -> bool:
    """Return whether a name is called, renamed, a decorator, an argument or a value.

    In imports and annotations alone, a name says nothing.
    """
    return bool(
        _USED.match(found.string, found.end())
        or _GIVEN.search(_before(found.string, found.start()))
    )


def _before(text: bytes, index: int) -> bytes:
    return text[max(0, index - _NEAR) : index]


def has_retry_call(text: bytes) -> bool:
    """Return whether a text calls, assigns or decorates with a name about retries."""
    lowered = text.lower()
    if not any(each in lowered for each in _ROOTS):
        return False
    passed: set[bytes] = set()
    for each in _CALLS:
        for found in each.finditer(lowered):
            before = _before(text, found.start())
            called = found[0].endswith(b"(")
            if called and _DEFINED.search(before):
                continue
            last = text[found.start() : found.end() - 1].rstrip()
            name = _NAME.findall(before)[0] + last
            if called or not _is_passed_on(name, text, found.end()):
                return True
            passed.add(name)
            if len(passed) > _MOST_PASSED:
                return True
    return bool(_DECORATOR.search(lowered)) or any(
        _may_import(text, each) for each in passed
    )


def _is_passed_on(name: bytes, text: bytes, after: int) -> bool:
    """Return whether a value is of the same name, as in ``retry=self.retry``.

    Args:
        name: The name to which it is given.
        text: The text of the file.
        after: The index of the value.
    """
    same = rb" ?(?:self\.)?_?%b *[,)\n]" % re.escape(name.lstrip(b"_"))
    return re.compile(same).match(text, after) is not None


def _may_import(text: bytes, name: bytes) -> bool:
    """Return whether a text may import a name: in a line, or in a list of names."""
    word = re.compile(rb"\b%b\b" % name)
    return any(
        word.search(line.partition(b"import")[2])
        or (word.search(line) and _NAMES.fullmatch(line))
        for line in text.split(b"\n")
        if name in line
    )


def has_loop(text: bytes) -> bool:
    """Return whether a loop may repeat a failed ``try``, or counts retries."""
    if not any(map(text.__contains__, _TRIES)) or not (
        b"while" in text or b"for" in text
    ):
        return False
    # Each loop that is open: its indent, where it begins, and whether it has a try.
    loops: list[list[int]] = []
    for found in _STATEMENT.finditer(text):
        indent = found.end(1) - found.start(1)
        while loops and loops[-1][0] >= indent:
            if _may_retry(text, loops.pop(), found.start()):
                return True
        if len(loops) > _DEEPEST:
            return True
        if found[2] in (b"for", b"while"):
            if _HEAD.match(text, found.end()):
                return True
            loops.append([indent, found.start(), 0])
        elif found[2] == b"try":
            for each in loops:
                each[2] = each[2] or found.start()
    return any(_may_retry(text, each, len(text)) for each in loops)


def _may_retry(text: bytes, loop: list[int], end: int) -> bool:
    _, start, attempt = loop
    if not attempt:
        return False
    counts = _COUNTS.match(text, start)
    body = text[start:end]
    if counts is not None and not _LEAVES.search(body):
        return False
    return bool(counts and not counts["end"]) or bool(_RETRIES.search(body.lower()))
