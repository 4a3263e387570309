"""What retrykit raises on purpose.

It knows the names of the faults and nothing of retrying::

    Exception
    └── RetrykitError          whatever retrykit itself has to say
        ├── ConfigError        a setting is wrong; also a ValueError
        ├── NestingError       what was opened last is not closed first
        ├── RetryError         a call gave up, where the policy asks for it
        └── Signal             raised by a retried function to steer its call
            ├── RetryAfter     make another attempt, after this delay
            └── GiveUp         stop at once, with this cause

`RetryError` is written in `retrykit.verdicts`, beside `FailureGroup`, the
ExceptionGroup of all errors of a call; the signals are in `retrykit.signals`.
A call that gives up raises none of these by default: it lets the last error
of the user's function out.
"""

__all__ = ["ConfigError", "NestingError", "RetrykitError"]


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
