"""Answers of predicates, read as True or False.

An answer that is neither counts by its truth, and is warned of once for each
predicate: a forgotten ``return`` would otherwise switch retrying off in silence.
"""

import inspect
import logging
from typing import Any
from weakref import ref

from retrykit.checks import refuse, told
from retrykit.records import type_name
from retrykit.verdicts import leave_note

__all__ = ["atruth", "refuse_awaitable", "truth"]


def truth(
    name: str, predicate: object, answer: object, error: Exception | None = None
) -> bool:
    """Return whether an answer counts as True.

    >>> truth("on_result", len, len("busy"))
    True

    Args:
        name: The setting that the predicate was given as.
        predicate: What answered.
        answer: Its answer.
        error: The error that it was asked about; None if it was a result.

    Raises:
        ConfigError: The answer must be awaited.
    """
    if isinstance(answer, bool):
        return answer
    refuse_awaitable(name, answer)
    return _counted(name, predicate, answer, error)


async def atruth(
    name: str, predicate: object, answer: object, error: Exception | None = None
) -> bool:
    """Return whether an answer counts as True, as `truth` does; it may be awaited."""
    if inspect.isawaitable(answer):
        answer = await answer
    if isinstance(answer, bool):
        return answer
    return _counted(name, predicate, answer, error)


def refuse_awaitable(name: str, answer: object) -> None:
    """Raise `ConfigError` if an answer must be awaited."""
    if inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()
        rule = "a predicate that answers at once, under retry"
        raise refuse(name, rule, answer, "use aretry for one that is awaited")


# By name, since numpy need not be installed; before 2.0 there is an underscore.
_NUMPY_BOOLS = ("numpy.bool", "numpy.bool_")


def _counted(
    name: str, predicate: object, answer: object, error: Exception | None
) -> bool:
    counts, kind = bool(answer), type_name(type(answer))
    if kind not in _NUMPY_BOOLS and _is_first(predicate):
        which = getattr(predicate, "__qualname__", None) or told(predicate)
        given = "None" if answer is None else f"a {kind}"
        text = f"{name}={which} returned {given}, neither True nor False: it counts "
        text += f"as {counts}; return True or False, as bool(...) does"
        logging.getLogger("retrykit").warning("%s", text)
        if error is not None:
            leave_note(error, text)
    return counts


_warned: dict[int, ref[Any]] = {}
"""The predicates that were warned of, by their identity while they live."""


def _is_first(predicate: object) -> bool:
    """Return whether a predicate was not warned of before; now it is."""
    key, forget = id(predicate), _warned.pop
    try:
        mark = ref(predicate, lambda _: forget(key, None))
    except TypeError:
        # It cannot be known again without being kept alive, but its class can.
        return _is_first(type(predicate))
    # One step, so that of several threads one is the first.
    return _warned.setdefault(key, mark) is mark
