"""Facts about a source module: its names, functions, calls and loops."""

from typing import NamedTuple

from retrykit.audit._loops import Loop
from retrykit.audit._values import Call, Value

__all__ = ["Block", "Called", "Candidate", "Definition", "Module"]


class Called(NamedTuple):
    """A call within a function.

    Attributes:
        function: What is called.
        line: Its first line.
        end_line: Its last line.
        timeout: The value of its ``timeout=``; None without one.
        named: The names of its keyword arguments.
        first: The literal text of its first argument, if it may be a request, else "".
        passed: The functions that are passed to it, if it may retry them; True stands
            for a lambda expression.
    """

    function: Value
    line: int
    end_line: int
    timeout: Value
    named: tuple[str, ...]
    first: str
    passed: tuple[Value, ...]


class Candidate(NamedTuple):
    """A call that may use a retry library.

    Attributes:
        call: The call.
        line: Its first line.
        end_line: Its last line.
        column: Its column, from 1.
        function: The full name of the function in which it stands, or "".
        iterated: Whether it is what a ``for`` loop, but not an asynchronous one,
            iterates over.
        caught: The names of the errors after which a handler makes it; None if they are
            not known, or if no handler is around it.
    """

    call: Call
    line: int
    end_line: int
    column: int
    function: str
    iterated: bool
    caught: tuple[str, ...] | None


class Block(NamedTuple):
    """A loop such as ``for attempt in retrying: with attempt: ...``.

    Attributes:
        value: What it iterates over.
        function: The full name of the function in which it stands.
        line: Its first line.
        end_line: Its last line.
    """

    value: Value
    function: str
    line: int
    end_line: int


class Definition(NamedTuple):
    """A function.

    Attributes:
        name: Its full name.
        line: The line of its ``def``.
        end_line: Its last line.
        is_async: Whether it is an async function.
        decorators: The values of its decorators, with line, last line and column.
        calls: The calls of known functions in its body, and in functions within it.
        result: The value that it returns, if only one ``return`` has a value other than
            None; otherwise UNKNOWN.
        throttled: The lines in which a status is compared with 429 or 503.
        words: The words in it that mention Retry-After or idempotency.
    """

    name: str
    line: int
    end_line: int
    is_async: bool
    decorators: tuple[tuple[Value, int, int, int], ...]
    calls: tuple[Called, ...]
    result: Value
    throttled: tuple[int, ...]
    words: tuple[str, ...]


class Module(NamedTuple):
    """The facts about a module that an audit needs.

    Attributes:
        path: The path of its file.
        name: Its dotted name.
        constants: The values of names that are imported or assigned once, including
            attributes of classes, as ``Class.name``.
        bases: The base classes of each class, keyed by its name in the module.
        definitions: Its functions.
        candidates: Calls that may use a retry library.
        loops: Handwritten loops that retry.
        blocks: Loops over the attempts of a library.
    """

    path: str
    name: str
    constants: dict[str, Value]
    bases: dict[str, tuple[Value, ...]]
    definitions: tuple[Definition, ...]
    candidates: tuple[Candidate, ...]
    loops: tuple[Loop, ...]
    blocks: tuple[Block, ...]
