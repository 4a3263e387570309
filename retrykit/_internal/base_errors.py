"""The exceptions that are raised below `retrykit.errors`, which has all of them."""

__all__ = ["ConfigError", "NestingError", "RetrykitError"]


class RetrykitError(Exception):
    """Base class of the exceptions of retrykit."""

    __module__ = "retrykit.errors"


class ConfigError(RetrykitError, ValueError):
    """An argument or a setting is invalid.

    Every function raises it for an argument outside its documented bounds, where the
    argument is given. The message has the form
    ``{name} must be {rule}, got {value!r}; {suggestion}``.
    """

    __module__ = "retrykit.errors"


class NestingError(RetrykitError, RuntimeError):
    """A context block is closed out of order, or in another context.

    A block that changes a context (a thread or task) must be closed there, the
    innermost block first.
    """

    __module__ = "retrykit.errors"
