"""What a retried function may raise to steer its own call.

A signal carries the error that it speaks for. It knows nothing of how the
call is carried out.
"""

from typing import final

from retrykit._internal.durations import Duration, format_duration, parse_duration
from retrykit._internal.validation import invalid_setting
from retrykit.errors import RetrykitError

__all__ = ["GiveUp", "RetryAfter", "Signal"]


class Signal(RetrykitError):  # noqa: N818  a wish, not an error
    """A wish of the retried function, addressed to its call.

    Let out by a call, it is a wish to the call around that one.
    """

    around: BaseException | None = None
    """The error in whose handler the block stands that raised the signal."""

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

        It is the cause, else the error whose handler raised the signal, else the
        signal itself.
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
        """Return whether the signal comes from the handler of an error.

        It does if the traceback of the signal leads through the frame that caught
        the error. An error that is being handled around the call is none of it;
        that around a block, whose frame is the handler's own, is in `around`.
        """
        caught, trace = error.__traceback__, self.__traceback__
        while caught is not None and trace is not None:
            if trace.tb_frame is caught.tb_frame:
                return True
            trace = trace.tb_next
        return False


@final
class RetryAfter(Signal):
    """Ask for another attempt after *delay*, whatever the schedule says.

    The limits of attempts and time still hold; `hint_cap`, which is about what
    others ask for, does not. The error is not asked whether it may be retried.
    When the call gives up, its caller sees the cause.

    >>> RetryAfter("2s")
    RetryAfter(2.0, None)
    >>> str(RetryAfter(2, ValueError("busy")))
    'asked for another attempt after 2s'

    Args:
        delay: Time before the next attempt. Seconds, timedelta or text, >= 0;
            0 means now.
        cause: The error that it stands for; by default the one in whose
            ``except`` clause it is raised. ``raise RetryAfter(2) from error``
            names another, and ``from None`` none.

    Raises:
        ConfigError: *delay* is no duration, or *cause* is no exception.
    """

    def __init__(self, delay: Duration, cause: Exception | None = None) -> None:
        self.delay = parse_duration("delay", delay)
        super().__init__(self.delay, cause, cause=cause)

    def __str__(self) -> str:
        return f"asked for another attempt after {format_duration(self.delay)}"


@final
class GiveUp(Signal):
    """Stop the call at once; its caller sees *cause*.

    >>> GiveUp(PermissionError("revoked")).error
    PermissionError('revoked')

    Args:
        cause: The error to let out; by default the one in whose ``except`` clause
            it is raised. ``raise GiveUp() from error`` names another. Without
            any, and with ``from None``, the signal itself is let out.

    Raises:
        ConfigError: *cause* is no exception.
    """

    def __init__(self, cause: Exception | None = None) -> None:
        super().__init__(cause, cause=cause)

    def __str__(self) -> str:
        return "asked to give up" if self.cause is None else f"gave up: {self.cause}"
