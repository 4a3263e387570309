"""Facts about a source module: its names, functions, calls and loops."""

from typing import NamedTuple

from retrykit.audit._loops import Loop
from retrykit.audit._values import Call, Value

__all__ = ["Block", "Called", "Candidate", "Definition", "Module"]


class Called(NamedTuple):
    """A call within a function.

    Attributes:
        function: What is called.
        line: The line in which it stands.
        end_line: Its last line.
        timeout: The value of its ``timeout=``; None without one.
        named: The names of its keyword arguments.
        first: The texts in its first argument, if it may be a request.
        passed: The functions that are passed to it, if its name is about retries; True
            stands for a lambda expression.
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
        iterated: Whether it is what a ``for`` loop iterates over.
        caught: The names of the errors of the handler in which it stands; None if it is
            not in a handler, or if the handler distinguishes errors.
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
        is_async: Whether it is a coroutine function.
        decorators: The values of its decorators, with line, last line and column.
        calls: The calls in its body.
        result: The value that it returns, if there is one return statement.
        throttled: The lines in which a status is compared with 429 or 503.
        words: What it says about Retry-After and idempotency.
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
        constants: The values of names that are assigned once, including those of
            classes, as ``Class.name``.
        bases: The base classes of each class.
        definitions: Its functions.
        candidates: Calls that may use a retry library.
        loops: Loops that repeat what failed.
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
