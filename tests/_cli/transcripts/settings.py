"""Settings that are code, as a user writes them, to be shown and checked."""

from threading import Event

from retrykit import Policy, Rule, retry


class Shutdown(Event):
    """An event whose text is the same every time."""

    def __repr__(self):
        return "shutdown"


def is_busy(result):
    """Return whether a result is rejected."""
    return result == "busy"


def warn(event):
    """Observe an event."""


GUARDED = Policy(
    on=(),
    rules=[Rule(on_result=is_busy, max_attempts=4)],
    fallback=None,
    stop_event=Shutdown(),
    observers={"retry_scheduled": warn},
)

SAFE = Policy(fallback=None)


@retry
def fetch():
    """Never called."""


@retry(policy=lambda: GUARDED)
def read():
    """Never called."""


@retry(policy=lambda: undefined)  # noqa: F821
def write():
    """Never called."""
