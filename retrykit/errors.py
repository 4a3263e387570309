"""What retrykit raises on purpose.

It knows the names of the faults and nothing of retrying::

    Exception
    └── RetrykitError          whatever retrykit itself has to say
        ├── ConfigError        a setting is wrong; also a ValueError
        ├── NestingError       what was opened last is not closed first
        ├── NestedRetryError   a call is retried inside of one that would, too
        ├── AttemptTimeout     an attempt took too long; also a TimeoutError
        ├── RetryError         a call gave up, where the policy asks for it
        └── Signal             raised by a retried function to steer its call
            ├── RetryAfter     make another attempt, after this delay
            └── GiveUp         stop at once, with this cause

`RetryError` and `NestedRetryError` are written in `retrykit.state.final_error`, beside
`FailureGroup`, the ExceptionGroup of all errors of a call; the signals are in
`retrykit.state.signals`.
A call that gives up raises none of these by default: it lets the last error
of the user's function out.
"""

__all__ = ["AttemptTimeout", "ConfigError", "NestingError", "RetrykitError"]


class RetrykitError(Exception):
    """Anything that retrykit itself has to say."""


class ConfigError(RetrykitError, ValueError):
    """A setting is wrong.

    Raised where the setting is written, and it reads
    ``{name} must be {rule}, got {value!r}; {way out}``.
    """


class NestingError(RetrykitError, RuntimeError):
    """What was opened is closed in the wrong order, or in another context.

    What is opened for a context (a thread or task) is closed there, the last
    one first, as ``with`` blocks are.
    """


class AttemptTimeout(RetrykitError, TimeoutError):  # noqa: N818  told by its name
    """An attempt was ended because it took longer than its policy allows.

    A failure like any other, which may be retried. Its traceback leads to where
    the attempt was at that moment.

    >>> raise AttemptTimeout(1.5)
    Traceback (most recent call last):
    ...
    retrykit.errors.AttemptTimeout: the attempt took longer than 1.5s

    Attributes:
        timeout: How long the attempt was allowed to take, in seconds, >= 0.
    """

    def __init__(self, timeout: float) -> None:
        super().__init__(timeout)
        self.timeout = timeout

    def __str__(self) -> str:
        # What is left of a deadline has more digits than anybody reads.
        timeout = round(self.timeout, 3) or self.timeout
        return f"the attempt took longer than {timeout:g}s"
