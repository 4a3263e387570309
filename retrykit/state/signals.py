"""Exceptions that a retried function raises to control its own retrying."""

from typing import final

from retrykit._internal.durations import Duration, duration_in_words, parse_duration
from retrykit._internal.user_facing import user_facing
from retrykit._internal.validation import invalid_setting
from retrykit.errors import RetrykitError

__all__ = ["GiveUp", "RetryAfter", "Signal"]


class Signal(RetrykitError):  # noqa: N818  an instruction, not an error
    """Base class of exceptions that a function raises to control its own retrying.

    A signal that a call raises as its final error controls the call around it.
    """

    around: BaseException | None = None
    """The error whose handler encloses the retry block that raised the signal."""

    def __init__(self, *args: object, cause: Exception | None) -> None:
        if cause is not None and not isinstance(cause, Exception):
            rule = "an exception (an instance of Exception)"
            suggestion = (
                f"write raise {type(self).__name__} from error, or raise an error"
            )
            raise invalid_setting("cause", rule, cause, suggestion)
        super().__init__(*args)
        self.cause = cause

    @property
    def error(self) -> Exception:
        """The error to record and to raise.

        The cause, else the error whose handler raised the signal, else the signal
        itself.
        """
        if self.cause is not None:
            return self.cause
        if isinstance(self.__cause__, Exception):
            return self.__cause__
        context = None if self.__suppress_context__ else self.__context__
        if context is self.around or not isinstance(context, Exception):
            return self
        if self._was_raised_handling(context):
            return context
        return self

    def _was_raised_handling(self, error: Exception) -> bool:
        """Return whether the signal was raised while handling an error of its call.

        It was if its traceback shares a frame with the error's: the frame that
        caught the error. An error handled outside the call shares none, and an error
        handled around a retry block is excluded by `around`.
        """
        caught, trace = error.__traceback__, self.__traceback__
        while caught is not None and trace is not None:
            if trace.tb_frame is caught.tb_frame:
                return True
            trace = trace.tb_next
        return False


@final
class RetryAfter(Signal):
    """Retry after *delay* instead of the schedule's delay, whatever the error.

    Without a delay it is retried at the schedule's delay. The limits of the policy
    still apply: attempts, time, budget, and the end of the schedule. `hint_cap` does
    not, since it limits the requests of others. If the call gives up, it raises the
    cause.

    >>> RetryAfter("2s")
    RetryAfter(2.0, None)
    >>> str(RetryAfter(2, ValueError("busy")))
    'asked for another attempt after 2 s'
    >>> str(RetryAfter())
    'asked for another attempt'

    Args:
        delay: Time before the next attempt. Seconds, timedelta or string, >= 0;
            0 means now; None, the default, leaves it to the schedule.
        cause: The error to record; by default the one whose ``except`` clause raises
            the signal. ``raise RetryAfter(2) from error`` names another, and
            ``from None`` none.
    """

    @user_facing
    def __init__(
        self, delay: Duration | None = None, cause: Exception | None = None
    ) -> None:
        self.delay = None if delay is None else parse_duration("delay", delay)
        super().__init__(self.delay, cause, cause=cause)

    def __str__(self) -> str:
        asked = "asked for another attempt"
        if self.delay is None:
            return asked
        return f"{asked} after {duration_in_words(self.delay)}"


@final
class GiveUp(Signal):
    """Stop the call at once; it raises *cause*.

    >>> GiveUp(PermissionError("revoked")).error
    PermissionError('revoked')

    Args:
        cause: The error to raise; by default the one whose ``except`` clause raises
            the signal. ``raise GiveUp() from error`` names another. Without any, and
            with ``from None``, the signal itself is raised.
    """

    @user_facing
    def __init__(self, cause: Exception | None = None) -> None:
        super().__init__(cause, cause=cause)

    def __str__(self) -> str:
        return "asked to give up" if self.cause is None else f"gave up: {self.cause}"
