"""Errors and warnings about retries that have no effect, or too great an effect.

Most warnings are logged once for each name of a call.
"""

from collections.abc import Callable
from sys import modules
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Final

from retrykit._core.call import RetryCall
from retrykit._core.call_record import Arguments
from retrykit._core.limits import most_attempts
from retrykit._internal.clocks import ClockSource, time_passed
from retrykit._internal.durations import format_duration
from retrykit._internal.late_modules import import_late, logging
from retrykit._internal.validation import invalid_setting
from retrykit.schedules._base import has_user_code

if TYPE_CHECKING:
    from retrykit._core.policy import Policy

__all__ = ["LAZY", "RETRYING_LIBRARIES", "longest_first_delay", "reject_retried"]
__all__ += ["reject_task", "searched", "warn_of_blocking", "warn_of_clients"]
__all__ += ["warn_of_frozen_time", "warn_of_lazy_result", "warn_of_product"]
__all__ += ["warn_of_repeated_client", "warn_once", "warned", "would_block"]

_OTHERS: Final = {
    ("_pytest.fixtures", "FixtureFunctionDefinition"): "a pytest fixture",
    ("celery.app.task", "Task"): "a Celery task",
    ("celery.local", "Proxy"): "a Celery task",
    ("click.core", "Command"): "a click command",
    ("django.tasks.base", "Task"): "a Django task",
    ("django_tasks.base", "Task"): "a Django task",
    ("dramatiq.actor", "Actor"): "a Dramatiq actor",
    ("huey.api", "TaskWrapper"): "a Huey task",
    ("prefect.flows", "Flow"): "a Prefect flow",
    ("prefect.tasks", "Task"): "a Prefect task",
    ("procrastinate.tasks", "Task"): "a Procrastinate task",
    ("taskiq.decor", "AsyncTaskiqDecoratedTask"): "a Taskiq task",
}
"""Objects whose inner function other code runs, by module and name of their type."""

_MARKED: Final = {
    "delay": ("rq.decorators", "an RQ job"),
    "__temporal_activity_definition": (
        "temporalio.activity",
        "a Temporal activity",
    ),
}
"""Attributes of functions that other code runs undecorated, each with the module that
sets it and a description of the function."""


def reject_task(fn: object) -> None:
    """Raise a ConfigError for a queue task or the like, which would run undecorated."""
    # Its real type: a proxy pretends to have its object's.
    kind, found = type(fn), None
    if kind is FunctionType:
        for name, (home, noun) in _MARKED.items():
            mark = vars(fn).get(name)
            # RQ gives its function the names of the decorated one.
            own = mark.__globals__["__name__"] if type(mark) is FunctionType else None
            if home in {own, type(mark).__module__}:
                found = noun
    else:
        for each in kind.__mro__:
            found = found or _OTHERS.get((each.__module__, each.__name__))
    if found is not None:
        rule = f"a function, not {found}, which would run without retries"
        suggestion = "put retry below the other decorator"
        # Not the task itself, which may have any repr.
        raise invalid_setting("fn", rule, kind, suggestion, code="not-retryable")


_RETRYING: Final = frozenset({"backoff", "retrying", "stamina", "tenacity"})
"""The modules of libraries whose decorators retry."""


def reject_retried(fn: object, policy: "Policy") -> None:
    """Raise a ConfigError if another library retries *fn*: attempts would multiply.

    ``nested="retry"`` or ``max_attempts=1`` in the policy allows it.
    """
    if policy.nested == "retry" or policy.max_attempts == 1:
        return
    library = _retrying_library(fn)
    if library:
        rule = f"a function that {library} does not retry, too, so that attempts "
        rule += "multiply"
        suggestion = f"leave out the decorator of {library}, or write "
        suggestion += 'nested="retry" here'
        raise invalid_setting("fn", rule, fn, suggestion, code="other-library")


def _retrying_library(fn: object) -> str:
    """Return the library that retries a function or what it wraps; empty if none."""
    if type(fn) is MethodType:
        fn = fn.__func__
    while type(fn) is FunctionType:
        # A decorated function is one of the module of its decorator.
        library = str(fn.__globals__.get("__name__")).partition(".")[0]
        fn = vars(fn).get("__wrapped__")
        if library in _RETRYING and fn is not None:
            return library
    return ""


_ENTERED: Final = {"_GeneratorContextManager", "_AsyncGeneratorContextManager"}

# By name, which takes a tenth of the time of looking for an attribute.
LAZY: Final = {"generator", "async_generator", "map", "filter", "Future", *_ENTERED}
"""Names of the types of results whose errors are raised later, if at all."""


def warn_of_lazy_result(name: str, kind: type) -> None:
    """Warn of a function that returns before its code has run, such as a generator."""
    where = "it is entered" if kind.__name__ in _ENTERED else "it is iterated"
    if kind.__name__ == "Future":
        where = "its result is read"
    message = "%s: its errors are not retried, since it returned a %s, and they are "
    message += "raised where %s: retry the code that does so"
    warn_once(name, message, kind.__name__.lstrip("_"), where)


def warn_of_blocking(name: str) -> None:
    """Warn of a delay of sync code that blocks the event loop of its thread."""
    message = "%s: its delay blocks the event loop of this thread, with all other "
    message += "tasks: make it a coroutine function, or call it in a thread"
    warn_once(name, message)


RETRYING_LIBRARIES: Final = frozenset(
    {
        *("anthropic", "azure", "botocore", "cohere", "elasticsearch", "google"),
        *("groq", "kubernetes", "litellm", "openai", "pymongo", "redis", "requests"),
        *("stripe", "together", "urllib3"),
    }
)
"""The modules of the libraries in `_own_retries`, which retry by themselves."""


def warn_of_clients(
    name: str,
    policy: "Policy",
    function: Callable[..., Any],
    arguments: Arguments,
    error: Exception | None,
) -> None:
    """Warn, once for each name, of clients with retries in a function that failed.

    After 1,000 names, no further function is searched for clients: since no more names
    are kept, it would be searched at each failure.
    """
    # In this order, which looks up the few names among the many.
    if modules.keys().isdisjoint(RETRYING_LIBRARIES) or name in searched:
        return
    if len(searched) >= _MOST:
        return
    searched[name] = None
    try:
        # Late, since most programs have no such client.
        layers = import_late("retrykit._core.layers")
        layers.warn_of_own_retries(name, policy, function, arguments, error)
    except Exception:  # noqa: BLE001  a process may have run out of file descriptors
        return


def warn_of_repeated_client(call: RetryCall, policy: "Policy") -> None:
    """Warn if a client of an integration used up its retries in a retried attempt.

    A call ends with the error of such a client, unless the function raises one that
    does not refer to it, or the policy has ``nested="retry"``.

    Args:
        call: A call that has another attempt after its failure.
        policy: Its policy.
    """
    failed, name, requests = call.exhausted_client or (0, "", 0)
    if failed != call.attempt:
        return
    way_out = "an error with its response, as of raise_for_status(), is not retried"
    if policy.nested == "retry":
        way_out = 'nested="respect" does not repeat them'
    switch, most = "max_attempts=1 in its client", most_attempts(policy)
    warn_of_product(call.terms.name, name, requests, most, switch, f"; {way_out}")


def warn_of_product(  # noqa: PLR0913, PLR0917  the parts of a sentence
    name: str,
    client: str,
    requests: int,
    most: int | None,
    switch: str,
    way_out: str = "",
) -> None:
    """Warn once of a client that makes several requests in each attempt of a call."""
    makes = f"%s: {client.replace('%', '%%')} makes up to %s requests in each"
    if most is None:
        warn_once(name, f"{makes} attempt; %s makes one%s", requests, switch, way_out)
    else:
        message = f"{makes} of %s attempts: %s x %s = %s; %s makes one%s"
        product = requests, most, most, requests, requests * most
        warn_once(name, message, *product, switch, way_out)


def longest_first_delay(policy: "Policy") -> float:
    """Return the longest first delay of a policy, in seconds; 0 if none is known."""
    if has_user_code(policy.schedule):
        return 0.0
    bounds = policy.schedule.bounds(1)
    return 0.0 if bounds is None else bounds[1]


def warn_of_frozen_time(call: RetryCall) -> None:
    """Warn, once in a call that only time would end, of a sleep that took no time."""
    last = call.last_failure
    if last is None or last.delay is None:
        return
    passed = call.attempt_started - last.started - last.duration
    if time_passed(last.delay, passed) or call.already_warned():
        return
    message = "%s slept %s before its next attempt, but its clock advanced only %s: "
    message += "is sleep mocked or time frozen? Without max_attempts, only time ends "
    message += "this call; retrykit.testing.virtual_time replaces both"
    logging.getLogger("retrykit").warning(
        message, call.terms.name, format_duration(last.delay), format_duration(passed)
    )


def would_block(clock: ClockSource[Any]) -> bool:
    """Return whether sleeping now, by a sync clock, would block an event loop."""
    running = getattr(modules.get("asyncio"), "_get_running_loop", None)
    idle = running is None or running() is None
    if idle and not ("trio" in modules and _runs_in_trio()):
        return False
    # A notebook runs its cells in an event loop, and nothing else meanwhile.
    return "ipykernel" not in modules and clock.current() is clock.real


def _runs_in_trio() -> bool:
    # Imported here: sync code needs no event loop.
    from retrykit._internal.loop_clock import running_trio  # noqa: PLC0415

    return running_trio() is not None


def warn_once(name: str, message: str, *values: object) -> None:
    """Log a warning, once for each name and message."""
    mark = object()
    # A single operation, so that only one thread is the first.
    if len(warned) < _MOST and warned.setdefault((name, message), mark) is mark:
        logging.getLogger("retrykit").warning(message, name, *values)


warned: dict[tuple[str, str], object] = {}
"""The names and the messages of the warnings that were logged in this process."""

searched: dict[str, None] = {}
"""The names of the calls in whose functions clients were looked for."""

_MOST: Final = 1_000
