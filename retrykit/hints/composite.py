"""One hint made of several.

What each of them reads is not known here.
"""

from typing import cast, final

from retrykit._internal.validation import invalid_setting
from retrykit.hints.base import CompositeHint, Hint, check_hint, read_hint
from retrykit.hints.serializable import SerializableHint
from retrykit.state.signals import GiveUp, RetryAfter

__all__ = ["FirstOf", "first_of"]


def first_of(*hints: Hint) -> Hint:
    """Return the hint that asks several, until one of them has an answer.

    >>> from retrykit.hints import milliseconds, retry_after
    >>> first_of(milliseconds("retry-after-ms"), retry_after())
    first_of(milliseconds('retry-after-ms'), retry_after())

    Args:
        *hints: At least one, the best first. One that is broken is passed
            over, with a warning.

    Raises:
        ConfigError: There is none, or one is no hint.
    """
    if not hints:
        raise invalid_setting("hints", "at least one hint", hints)
    known = [cast("Hint", check_hint("hints", hint)) for hint in hints]
    flat = [x for hint in known for x in _members(hint)]
    return FirstOf(tuple(flat)) if len(flat) > 1 else flat[0]


@final
class FirstOf(SerializableHint, CompositeHint):
    """The first answer of several hints; `first_of` builds it.

    Attributes:
        hints: The hints in the order in which they are asked.
    """

    __slots__ = ("hints",)
    kind = "first_of"
    hints: tuple[Hint, ...]

    def __call__(self, outcome: object, /) -> float | RetryAfter | GiveUp | None:
        """Return the first answer to an error or a result that is not None."""
        # By its type: what an object says of its class may be anyone's code.
        failed = issubclass(type(outcome), Exception)
        error = cast("Exception", outcome) if failed else None
        return read_hint(self, outcome, error)

    def _arguments(self) -> tuple[object, ...]:
        return self.hints


def _members(hint: Hint) -> tuple[Hint, ...]:
    return hint.hints if isinstance(hint, FirstOf) else (hint,)
