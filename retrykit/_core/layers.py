"""The layers of retries around code: retried calls, and the clients inside them."""

import math
from collections.abc import Callable, Iterator
from itertools import groupby
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple, final

from retrykit._core.call import (
    RetryCall,
    current_entry,
    innermost_running,
    outer_calls,
    running_call,
)
from retrykit._core.call_record import Arguments
from retrykit._core.ineffective import warn_of_product, warn_once
from retrykit._core.limits import most_attempts
from retrykit._internal.durations import duration_in_words
from retrykit._own_retries import Client, find_clients, find_failed_client

if TYPE_CHECKING:
    from retrykit._core.policy import Policy

__all__ = ["Layer", "Layers", "clients_of", "layers", "warn_of_own_retries"]


@final
class Layer(NamedTuple):
    """One layer that makes several attempts for each attempt of the layer around it.

    Attributes:
        name: The name of a retried call, or of the class of a client.
        attempt: The number of its running attempt; None for a client.
        most: The maximum number of its attempts; None if that is unknown or unlimited.
        switch: How to switch a client's own retries off; empty for a retried call.
        time_limit: For how long a client repeats a request, in seconds; infinite if
            nothing limits it; None if a count does, or for a retried call.
    """

    name: str
    attempt: int | None
    most: int | None
    switch: str
    time_limit: float | None = None


@final
class Layers(tuple[Layer, ...]):
    """The layers around the current code, the outermost first; ``str`` lists them."""

    __slots__ = ()

    @property
    def requests(self) -> int | None:
        """The largest number of requests by all layers; None if unlimited or unknown.

        Of the clients within one call, the one that makes the most requests counts.
        """
        factors = self._factors()
        return None if None in factors else math.prod(map(int, filter(None, factors)))

    def _factors(self) -> list[int | None]:
        factors: list[int | None] = []
        for is_client, each in groupby(self, lambda layer: layer.attempt is None):
            most = [layer.most for layer in each]
            if is_client:
                most = [None if None in most else max(map(int, filter(None, most)))]
            factors += most
        return factors

    def __str__(self) -> str:
        lines = []
        for number, layer in enumerate(self, 1):
            most = "without a limit" if layer.most is None else f"at most {layer.most}"
            what = f"attempt {layer.attempt}, {most}"
            if layer.time_limit is not None:
                most = f"retries {_in_words(layer.time_limit)}"
                what = f"{most} in each attempt; {layer.switch} for one request"
            elif layer.attempt is None:
                what = f"{most} requests in each attempt; {layer.switch} for one"
            lines.append(f"{number}. {layer.name}: {what}")
        every = self._factors()
        factors = " x ".join(str(each or "unlimited") for each in every)
        total = f" = {self.requests}" if self.requests and len(every) > 1 else ""
        return "\n".join([*lines, f"requests: {factors or '1'}{total}"])


def layers() -> Layers:
    """Return the layers of retries around the code that calls this function.

    >>> from retrykit import Policy
    >>> inner, outer = Policy(name="fetch"), Policy(name="checkout", max_attempts=3)
    >>> print(outer.call(inner.call, layers))
    1. checkout: attempt 1, at most 3
    2. fetch: attempt 1, at most 5
    requests: 3 x 5 = 15

    They are the running calls of retrykit, and within each call the clients with
    retries of their own that its function has: among its arguments, in the object that
    it belongs to, or in the variables that it names. A nested call that has given up is
    not repeated by the call around it, unless that one has ``nested="retry"``; the
    requests of a client are repeated.

    Returns:
        The outermost first; empty outside a retried call.

    Raises:
        LookupError: The arguments of a call are not known yet, and this is another
            thread or task than the call's.
    """
    entry = innermost_running(current_entry.get())
    call = None if entry is None else running_call(entry)
    if call is None:
        return Layers()
    found: list[Layer] = []
    seen: set[int] = set()
    # A client belongs to the innermost of the calls that it is handed through.
    for each in (call, *outer_calls(call)):
        own = Layer(each.terms.name, each.attempt, each.terms.max_attempts, "")
        found[:0] = [own, *_layers_in(each, seen)]
    return Layers(found)


def _layers_in(call: RetryCall, seen: set[int]) -> Iterator[Layer]:
    controller = call.controller
    if controller is None or controller.function is None:
        return
    args, kwargs = call.find_arguments()
    for name, own, client in clients_of(controller.function, args, kwargs):
        most, limit = own.count(client), own.time_limit(client)
        if (limit or (most or 1) > 1) and id(client) not in seen:
            seen.add(id(client))
            yield Layer(name, None, most, own.text, limit)


def warn_of_own_retries(
    name: str,
    policy: "Policy",
    function: Callable[..., Any],
    arguments: Arguments,
    error: Exception | None,
) -> None:
    """Warn, once for each library, of a function's clients that retry by themselves."""
    most = most_attempts(policy)
    if most == 1:
        return
    # Some keep a sync and an async client, or make one of another kind.
    told = set()
    failed = find_failed_client(error)
    if failed is not None:
        # The function may name a client of which this one is a copy.
        told.add(failed[1].library)
        _warn_of_client(name, most, failed)
    for found in clients_of(function, *arguments):
        library = found[1].library
        if library not in told and _warn_of_client(name, most, found):
            told.add(library)


def _warn_of_client(name: str, most: int | None, found: Client) -> bool:
    """Warn of a client that retries by itself, and return whether it does."""
    kind, own, client = found
    requests, limit = own.count(client), own.time_limit(client)
    if limit is not None:
        each = "each attempt" if most is None else f"each of {most} attempts"
        message = f"%s: {kind} retries by itself %s in {each}; %s makes one request"
        warn_once(name, message, _in_words(limit), own.text)
    elif requests is not None and requests > 1:
        warn_of_product(name, kind, requests, most, own.text)
    return limit is not None or (requests or 1) > 1


def _in_words(limit: float) -> str:
    """Return in words how long a client retries."""
    if limit == math.inf:
        return "without a limit"
    return f"for up to {duration_in_words(limit)}"


def clients_of(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[Client]:
    """Yield the clients of a function: in its arguments, object and variables."""
    objects = [*args, *kwargs.values(), getattr(function, "__self__", None)]
    objects += _named(function)
    return find_clients(objects)


def _named(function: Any) -> Iterator[object]:
    """Yield the values of the global and the outer variables that a function names."""
    inner = getattr(function, "__func__", function)
    inner = getattr(inner, "__wrapped__", inner)
    code = getattr(inner, "__code__", None)
    if not isinstance(code, CodeType):
        return
    known = inner.__globals__
    yield from (known[name] for name in code.co_names if name in known)
    for cell in inner.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            # It has no value yet.
            continue
