"""Calls of clients that make the attempts themselves, and ask what follows.

For clients that have a place where they ask, and none where a driver could be.
No client is imported, and nothing is sent here.
"""

from typing import TYPE_CHECKING, Any

from retrykit._internal.clocks import sync_clock
from retrykit.execution.controller import RetryController
from retrykit.execution.nesting import Call, current_call
from retrykit.execution.outcomes import handle_failure, handle_result

if TYPE_CHECKING:
    from retrykit.policy.policy import Policy

__all__ = ["ask", "asking", "goes_on", "leave", "wait"]


def asking(policy: "Policy", name: str, call: Call) -> Call:
    """Return a call of which an attempt has ended.

    Args:
        policy: What it is held to, from here on.
        name: What it is called, where the policy has no name.
        call: The call, if it goes on. If it has ended, or is empty, another
            begins, and its first attempt counts as begun just now.
    """
    book = RetryController(
        policy, name, sync_clock, None, driven=False
    ).with_overrides()
    if goes_on(call):
        call[0] = book
        return call
    call = [book, 0.0, current_call.get()]
    book.start(call)
    return call


def goes_on(call: Call) -> bool:
    """Return whether there is a call, and it has not ended."""
    return bool(call) and call[0] is not None


def ask(call: Call, error: Exception | None, result: Any) -> bool:
    """Write down what came of an attempt, and return whether another follows.

    Args:
        call: The call, from `asking`. Where it ends, the last in it is what it lets
            out, if it `raises_another_error` the error or the result.
        error: What the attempt raised, or None.
        result: What it returned.
    """
    book: RetryController = call[0]
    try:
        if error is None and handle_result(book, call, result):
            return False
        return handle_failure(book, call, error, result) is not None
    except BaseException as exit_:
        book.record_interruption(call, exit_)
        raise


def wait(call: Call) -> None:
    """Sleep until the next attempt, which is due, and write down that it begins."""
    try:
        sync_clock.sleep(call[2].next_delay)
    except BaseException as exit_:
        leave(call, exit_)
        raise
    call[0].start_next_attempt(call)


def leave(call: Call, error: BaseException) -> None:
    """Write down that a call ends with an error that is nothing to retry."""
    call[0].record_interruption(call, error)
