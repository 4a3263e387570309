"""Exceptions that retrykit raises.

::

    Exception
    └── RetrykitError          base class
        ├── ConfigError        a setting is invalid; also a ValueError
        ├── NestingError       context blocks are closed out of order
        ├── NestedRetryError   a call inside this one gave up, under nested="raise"
        ├── CommitUnknown      a transaction of a database may have been committed
        ├── AttemptTimeout     an attempt took too long; also a TimeoutError
        ├── RetryError         a call gave up; wraps its last error, if there is one
        └── Signal             raised by a retried function to control its call
            ├── RetryAfter     retry, after this delay
            └── GiveUp         stop at once, with this cause

`RetryError` and `NestedRetryError` are defined in `retrykit.state.final_error`, beside
`FailureGroup`, the ExceptionGroup of all errors of a call; the signals are in
`retrykit.state.signals`. By default a call that gives up raises its last error, and
a `RetryError` only if its last result was rejected.
"""

__all__ = ["AttemptTimeout", "CommitUnknown", "ConfigError", "NestingError"]
__all__ += ["RetrykitError"]


class RetrykitError(Exception):
    """Base class of the exceptions of retrykit."""


class ConfigError(RetrykitError, ValueError):
    """An argument or a setting is invalid.

    Every function raises it for an argument outside its documented bounds, where the
    argument is given. The message has the form
    ``{name} must be {rule}, got {value!r}; {suggestion}``.
    """


class NestingError(RetrykitError, RuntimeError):
    """A context block is closed out of order, or in another context.

    A block that changes a context (a thread or task) must be closed there, the
    innermost block first.
    """


class AttemptTimeout(RetrykitError, TimeoutError):  # noqa: N818  told by its name
    """An attempt took longer than its policy allows, and was cancelled.

    The attempt is retried whatever the policy's `on` says, unless `give_up_on`
    matches. The traceback shows where the attempt was cancelled.

    >>> raise AttemptTimeout(1.5)
    Traceback (most recent call last):
    ...
    retrykit.errors.AttemptTimeout: the attempt took longer than 1.5 s

    Attributes:
        timeout: The time limit of the attempt, in seconds, >= 0.
    """

    def __init__(self, timeout: float) -> None:
        super().__init__(timeout)
        self.timeout = timeout

    def __str__(self) -> str:
        # The time left of a deadline has many digits.
        timeout = round(self.timeout, 3) or self.timeout
        text = f"{timeout * 1000:g} ms" if 0 < timeout < 1 else f"{timeout:g} s"
        return f"the attempt took longer than {text}"


class CommitUnknown(RetrykitError):  # noqa: N818  told by its name
    """The connection was lost during COMMIT: the transaction may have been committed.

    The integrations of databases raise it. It is not retried, unless the transaction is
    ``idempotent``; nor by calls around it, unless they have ``nested="retry"``. Look in
    the database before you repeat it. Its ``__cause__`` is the error of the driver.
    """
