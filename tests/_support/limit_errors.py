"""Messages of errors about limits, and what raises them."""

import asyncio

from retrykit import Hedge, Policy, retrying, schedules as s
from retrykit.durable import Job
from retrykit.limits import (
    AIMD,
    Adapted,
    AdaptiveRateLimit,
    CircuitBreaker,
    Concurrency,
    Gradient2,
    Limit,
    RateLimit,
    Registry,
    Vegas,
    limit_from_dict,
    shared,
)
from retrykit.limits._adaptive import adaptive_from_dict
from retrykit.limits._serialization import KINDS as LIMIT_KINDS

__all__ = ["CALL_ERRORS", "ERRORS"]

RATE = "0.5 is 50 %"
OTHERS, SET = "the other limits", "set min_limit or max_limit, too"
SLOWER = 'for fewer than one a second, write RateLimit(1, per="2s")'


class Local:
    """Where an error has no name that data could use."""

    class Error(Exception):
        pass


Hidden = Local.Error
del Local


def is_busy(error):
    return bool(error)


async def later(_):
    return True


async def throttles(_):
    return True


def no_argument():
    return True


def pages():
    yield 1


@classmethod
def of(cls):
    return cls


class Awaited:
    def __await__(self):
        yield

    def __repr__(self):
        return "Awaited()"


KEYS = (
    "kind, failure_rate, window, minimum_calls, consecutive_failures, slow_after, "
    "slow_rate, open_for, probes, successes, probe_timeout, on, name, scope"
)


def share_another():
    shared("key:judged", make=CircuitBreaker)
    shared("key:judged", make=lambda: CircuitBreaker(on=OSError))


def of_data(**data):
    return limit_from_dict({"kind": "circuit_breaker", **data})


BREAKER = CircuitBreaker()


class AsyncLimit(Limit):
    """A limit that must be awaited."""

    state = "free"

    async def acquire(self):
        return None

    def __repr__(self):
        return "AsyncLimit()"


class OwnLimit(AsyncLimit):
    """A limit of the user's own."""

    def acquire(self):
        return None

    def __repr__(self):
        return "OwnLimit()"


ASYNC_LIMIT = AsyncLimit()
REGISTRY = Registry(CircuitBreaker)
HEDGE = Hedge(1, idempotent=True)


def judge_differently(setting, value):
    """Ask one breaker by two policies."""
    breaker = CircuitBreaker()
    for policy in (Policy(), Policy(**{setting: value})):
        policy.replace(admission=[breaker]).call(int)


ERRORS = {
    'hedge must be a Hedge, got 5; write Hedge("50ms", idempotent=True)': (
        lambda: Policy(hedge=5)
    ),
    "hedge must be None where nothing can be sent twice: in a block, a stream, a job "
    "or a gRPC call, got Hedge(1.0, idempotent=True); put what is hedged into a "
    "function": lambda: retrying(hedge=HEDGE),
    "hedge must be a dict of settings of a Hedge, got 5": (
        lambda: Policy.from_dict({"hedge": 5})
    ),
    "hedge must be a dict with the keys delay, quantile, at_most, extra, idempotent, "
    "got {'dela': 1}; did you mean delay?": (
        lambda: Policy.from_dict({"hedge": {"dela": 1}})
    ),
    "delay must be given, or quantile, and not both, got None; write "
    'Hedge("50ms", ...)': lambda: Hedge(idempotent=True),
    "delay must be a finite number >= 0, got -2": lambda: Hedge(-2, idempotent=True),
    "quantile must be a finite number >= 0 and <= 1, got 95": (
        lambda: Hedge(quantile=95, idempotent=True)
    ),
    "extra must be a finite number >= 0 and <= 9, got 10": (
        lambda: Hedge(1, extra=10, idempotent=True)
    ),
    "quantile must be a number > 0 and < 1, got 0; 0.95 is 95 %": (
        lambda: Hedge(quantile=0, idempotent=True)
    ),
    "extra must be a number > 0 and <= 9, got 0; 0.1 is 10 % more load": (
        lambda: Hedge(1, extra=0, idempotent=True)
    ),
    "at_most must be an integer >= 2, got 1; the first counts": (
        lambda: Hedge(1, at_most=1, idempotent=True)
    ),
    "idempotent must be True for a function that is hedged, which may run twice at "
    "once, got False; write idempotent=True if that does no harm": (
        lambda: Hedge(1)(len)
    ),
    "idempotent must be a bool, got 1": lambda: Hedge(1, idempotent=1),
    "admission must be a list of limits, got CircuitBreaker(); put brackets around "
    "it": lambda: Policy(admission=BREAKER),
    "admission must be a list of limits, got 5; see retrykit.limits": (
        lambda: Policy(admission=5)
    ),
    "admission[0] must be a limit, got 5; use one of retrykit.limits": (
        lambda: Policy(admission=[5])
    ),
    f"admission[0] must be a limit, got {CircuitBreaker!r}; create one: "
    "CircuitBreaker()": lambda: Policy(admission=[CircuitBreaker]),
    "admission[0] must be a limit whose acquire() is sync, got AsyncLimit(); return a "
    "lease whose wait_async() waits": lambda: Policy(admission=[AsyncLimit()]),
    "admission[1] must be in the list once, since each attempt would ask it twice, got "
    "CircuitBreaker()": lambda: Policy(admission=[BREAKER, BREAKER]),
    "admission must be limits, and a Registry only in an HTTP client, which has hosts, "
    f"got {REGISTRY!r}; take the limit of a key: registry[key]": (
        lambda: Policy(admission=[REGISTRY]).call(no_argument)
    ),
    "admission[0] must be one of retrykit.limits in a policy that is written as data, "
    "got OwnLimit(); leave it out, and add it with .replace(admission=...)": (
        lambda: Policy(admission=[OwnLimit()]).to_dict()
    ),
    "admission must be a list of dicts, got {}": (
        lambda: Policy.from_dict({"admission": {}})
    ),
    "admission must be empty in a job, whose attempts others begin, got "
    "[CircuitBreaker()]; write with limit.guard(): in the function": (
        lambda: Job(no_argument, Policy(admission=[BREAKER]))
    ),
    "admission must be a breaker of policies with the same give_up_on, here (), not "
    "KeyError, got CircuitBreaker(); give each its own breaker, or the breaker its own "
    "on": lambda: judge_differently("give_up_on", KeyError),
    f"failure_rate must be a number > 0 and <= 1, got 0; {RATE}": (
        lambda: CircuitBreaker(failure_rate=0)
    ),
    f"failure_rate must be a finite number >= 0 and <= 1, got 50; {RATE}": (
        lambda: CircuitBreaker(failure_rate=50)
    ),
    f"slow_rate must be a finite number >= 0 and <= 1, got '1'; {RATE}": (
        lambda: CircuitBreaker(slow_after=1, slow_rate="1")
    ),
    "slow_after must be a duration if slow_rate is given, got None; write "
    'slow_after="5s"': lambda: CircuitBreaker(slow_rate=0.5),
    "slow_after must be a duration > 0, got 0": lambda: CircuitBreaker(slow_after=0),
    "window must be a number of calls, or a time as text or timedelta, got 30.0; "
    'write 100, or "30s"': lambda: CircuitBreaker(window=30.0),
    "window must be a number of calls, or a time as text or timedelta, got True; "
    'write 100, or "30s"': lambda: CircuitBreaker(window=True),
    "window must be an integer >= 1, got 0": lambda: CircuitBreaker(window=0),
    "window must be an integer >= 1 and <= 100000, got 100001": (
        lambda: CircuitBreaker(window=100_001)
    ),
    "window must be a duration from 1s to 1d, got '0.5s'": (
        lambda: CircuitBreaker(window="0.5s")
    ),
    'window must be a duration such as "12.5s", "500ms" or "1h30m", got \'30\'; write '
    "the unit (us, ms, s, m, h, d, w)": lambda: CircuitBreaker(window="30"),
    "minimum_calls must be at most the window, 10, got 20; a window of so few calls "
    "never has that many": lambda: CircuitBreaker(window=10, minimum_calls=20),
    "minimum_calls must be an integer >= 1, got 0": (
        lambda: CircuitBreaker(minimum_calls=0)
    ),
    "consecutive_failures must be an integer >= 1, got 0": (
        lambda: CircuitBreaker(consecutive_failures=0)
    ),
    "open_for must be a duration > 0, got 0; list several, or give a schedule, for a "
    "time that grows": lambda: CircuitBreaker(open_for=0),
    "open_for must be a schedule with at least one delay, got constant(1.0).take(0)": (
        lambda: CircuitBreaker(open_for=s.constant(1).take(0))
    ),
    "open_for: schedule must be a schedule, a re-iterable of durations, or a generator "
    "function, got {}; write constant(...) for the same delay each time": (
        lambda: of_data(open_for={})
    ),
    "probes must be an integer >= 1, got 0": lambda: CircuitBreaker(probes=0),
    "probes must be an integer >= 1 and <= 10000, got 10001": (
        lambda: CircuitBreaker(probes=10_001)
    ),
    "successes must be an integer >= 1 and <= 2, got 3; at most the number of probes, "
    "2, or 0.5 for half of them": lambda: CircuitBreaker(probes=2, successes=3),
    "successes must be a number > 0 and <= 1, got 0.0; at most the number of probes, "
    "1, or 0.5 for half of them": lambda: CircuitBreaker(successes=0.0),
    "probe_timeout must be a duration > 0, got 0": (
        lambda: CircuitBreaker(probe_timeout=0)
    ),
    "on must be an Exception type, a tuple of them, or a predicate of the error, got "
    "None; write () for no errors": lambda: CircuitBreaker(on=None),
    f"on must be a sync predicate, got {later!r}": lambda: CircuitBreaker(on=later),
    "on_result must be a predicate that takes the result, got 503": (
        lambda: CircuitBreaker(on_result=503)
    ),
    f"on_result must be a predicate that takes the result, got {no_argument!r}": (
        lambda: CircuitBreaker(on_result=no_argument)
    ),
    f"on_result must be a sync predicate, got {later!r}": (
        lambda: CircuitBreaker(on_result=later)
    ),
    "name must be a non-empty string, got ''": lambda: CircuitBreaker(name=""),
    "arguments of CircuitBreaker must be given by name, got 5; write failure_rate=5": (
        lambda: CircuitBreaker(5)
    ),
    f"on_result must be left out of a breaker that is written as data, got "
    f"{is_busy!r}": lambda: CircuitBreaker(on_result=is_busy).to_dict(),
    f"on must be importable exception types in a policy that is written as data, got "
    f"{Hidden!r}; leave it out, and add it with .replace(on=...)": (
        lambda: CircuitBreaker(on=Hidden).to_dict()
    ),
    f"fn must be a function, got {of!r}; write @classmethod above the limit": (
        lambda: CircuitBreaker()(of)
    ),
    "fn must be a function, got 5": lambda: CircuitBreaker()(5),
    f"fn must be no generator function, got {pages!r}; write with limit.guard(): in "
    "its body": lambda: CircuitBreaker()(pages),
    "make must be a function that builds a limit, got 5; name the class, or write "
    "lambda: CircuitBreaker(...)": lambda: Registry(5),
    "make() must be a new Limit, got 0; return one": lambda: Registry(int)["a"],
    "make must be a function that builds a limit of retrykit.limits, got 0; name the "
    "class, or write lambda: CircuitBreaker(...)": lambda: shared("process", int),
    "make must be a function that builds CircuitBreaker(), as before in this scope, "
    "got CircuitBreaker(on=OSError); give another limit another scope": share_another,
    "name must be a non-empty string, got []": lambda: Adapted(ASYNC_LIMIT, name=[]),
    "limiter must be an object with acquire(), such as a semaphore, got 5": (
        lambda: Adapted(5)
    ),
    f"limit must be a dict whose kind is one of {', '.join(LIMIT_KINDS)}, got "
    "{'kind': 'circuit-breaker'}; did you mean circuit_breaker?": (
        lambda: limit_from_dict({"kind": "circuit-breaker"})
    ),
    f"limit must be a dict whose kind is one of {', '.join(LIMIT_KINDS)}, got 5": (
        lambda: limit_from_dict(5)
    ),
    f"limit must be a dict with the keys {KEYS}, got {{'kind': 'circuit_breaker', "
    "'probe': 2}; did you mean probes?": lambda: of_data(probe=2),
    f"calls must be an integer >= 1, got 0; {SLOWER}": lambda: RateLimit(0),
    f"calls must be an integer >= 1, got 0.5; {SLOWER}": lambda: RateLimit(0.5),
    f"calls must be an integer >= 1 and <= 100000, got 100001; {SLOWER}": (
        lambda: RateLimit(100_001)
    ),
    "RateLimit must be given a value for calls": RateLimit,
    "per must be a duration > 0, got 0": lambda: RateLimit(5, 0),
    "spread must be a bool, got 1": lambda: RateLimit(5, spread=1),
    "max_wait must be a finite number >= 0, got inf": lambda: RateLimit(
        5, max_wait=float("inf")
    ),
    "name must be a non-empty string, got '  '": lambda: RateLimit(5, name="  "),
    "burst is not a parameter of RateLimit, got 2; the parameters are calls, per, "
    "spread, max_wait, name": lambda: RateLimit(5, burst=2),
    "limit must be a dict with the keys kind, calls, per, spread, max_wait, name, "
    "scope, got {'kind': 'rate', 'call': 2}; did you mean calls?": (
        lambda: limit_from_dict({"kind": "rate", "call": 2})
    ),
    "min_limit must be an integer >= 1, got 0": lambda: AIMD(min_limit=0),
    "min_limit must be an integer >= 1, got -1": lambda: Gradient2(min_limit=-1),
    "max_limit must be an integer >= 1, got 0": lambda: AIMD(max_limit=0),
    "initial_limit must be an integer >= 1, got 0": lambda: AIMD(initial_limit=0),
    "max_limit must be an integer >= min_limit, 20, got 10; set min_limit, too": (
        lambda: Gradient2(max_limit=10)
    ),
    f"initial_limit must be an integer from 20 to 200, {OTHERS}, got 10; {SET}": (
        lambda: AIMD(initial_limit=10)
    ),
    f"initial_limit must be an integer from 20 to 200, {OTHERS}, got 201; {SET}": (
        lambda: Gradient2(initial_limit=201)
    ),
    f"initial_limit must be an integer from 1 to 10, {OTHERS}, got 20; {SET}": (
        lambda: Vegas(max_limit=10)
    ),
    "max_limit must be an integer >= 1, got 0.5": lambda: Vegas(max_limit=0.5),
    "backoff_ratio must be a number >= 0.5 and < 1, got 1": (
        lambda: AIMD(backoff_ratio=1)
    ),
    "backoff_ratio must be a finite number >= 0.5 and <= 1, got 0.4": (
        lambda: AIMD(backoff_ratio=0.4)
    ),
    "timeout must be a duration > 0, got 0": lambda: AIMD(timeout=0),
    "alpha must be an integer >= 1, got 0": lambda: Vegas(alpha=0),
    "beta must be an integer >= 1, got None": lambda: Vegas(beta=None),
    "beta must be an integer >= alpha, 9, got 6": lambda: Vegas(alpha=9),
    "probe_every must be an integer >= 1, got 0": lambda: Vegas(probe_every=0),
    "seed must be an integer >= 0, got -1": lambda: Vegas(seed=-1),
    "smoothing must be a number > 0 and <= 1, got 0": lambda: Vegas(smoothing=0),
    "smoothing must be a finite number >= 0 and <= 1, got 2": (
        lambda: Gradient2(smoothing=2)
    ),
    "queue_size must be an integer >= 0, got -1": lambda: Gradient2(queue_size=-1),
    "long_window must be an integer >= 1, got 0": lambda: Gradient2(long_window=0),
    "tolerance must be a finite number >= 1, got 0.5": (
        lambda: Gradient2(tolerance=0.5)
    ),
    "limit must be a dict whose kind is one of aimd, gradient2, vegas, got {'kind': "
    "'gradient'}; did you mean gradient2?": (
        lambda: adaptive_from_dict({"kind": "gradient"})
    ),
    "limit must be a dict whose kind is one of aimd, gradient2, vegas, got 5": (
        lambda: adaptive_from_dict(5)
    ),
    "limit must be a dict with the keys kind, initial_limit, min_limit, max_limit, "
    "backoff_ratio, timeout, got {'kind': 'aimd', 'max': 5}": (
        lambda: adaptive_from_dict({"kind": "aimd", "max": 5})
    ),
}

ERRORS |= {
    "max_wait must be a finite number >= 0, got -1": lambda: AdaptiveRateLimit(
        max_wait=-1
    ),
    'max_wait must be a duration such as "12.5s", "500ms" or "1h30m", got \'5\'; write '
    "the unit (us, ms, s, m, h, d, w)": lambda: AdaptiveRateLimit(max_wait="5"),
    "on must be an Exception type, a tuple of them, or a predicate of the error, got "
    "429": lambda: AdaptiveRateLimit(on=429),
    f"on must be a sync predicate, got {throttles!r}": (
        lambda: AdaptiveRateLimit(on=throttles)
    ),
    "on_result must be a predicate that takes the result, got 429": (
        lambda: AdaptiveRateLimit(on_result=429)
    ),
    f"on_result must be a sync predicate, got {throttles!r}": (
        lambda: AdaptiveRateLimit(on_result=throttles)
    ),
    "name must be a non-empty string, got 5": lambda: AdaptiveRateLimit(name=5),
    "arguments of AdaptiveRateLimit must be given by name, got 5; write on=5": (
        lambda: AdaptiveRateLimit(5)
    ),
    f"on_result must be left out of a limit that is written as data, got {is_busy!r}": (
        lambda: AdaptiveRateLimit(on_result=is_busy).to_dict()
    ),
    f"on must be importable exception types in a policy that is written as data, got "
    f"{is_busy!r}; leave it out, and add it with .replace(on=...)": (
        lambda: AdaptiveRateLimit(on=is_busy).to_dict()
    ),
    "limit must be a dict with the keys kind, on, max_wait, name, scope, got {'kind': "
    "'adaptive_rate', 'maxwait': 2}; did you mean max_wait?": (
        lambda: limit_from_dict({"kind": "adaptive_rate", "maxwait": 2})
    ),
}

ADAPTS = "or an algorithm that adapts it"
QUEUE = "give queue=10, so that calls can wait"


class Fixed:
    """An algorithm that data cannot name."""

    limit = 5

    def sample(self, **_):
        return self.limit

    def __repr__(self):
        return "Fixed()"


def of_concurrency(**data):
    return limit_from_dict({"kind": "concurrency", **data})


ERRORS |= {
    f"at_most must be an integer >= 1, got 0; {ADAPTS}": lambda: Concurrency(0),
    f"at_most must be an integer >= 1, got '5'; {ADAPTS}": lambda: Concurrency("5"),
    f"at_most must be an integer >= 1, got True; {ADAPTS}": lambda: Concurrency(True),
    f"at_most must be an integer >= 1, got {Fixed!r}; {ADAPTS}": (
        lambda: Concurrency(Fixed)
    ),
    f"at_most must be an integer >= 1 and <= 1000000, got 1000001; {ADAPTS}": (
        lambda: Concurrency(1_000_001)
    ),
    "Concurrency must be given a value for at_most": lambda: Concurrency(queue=5),
    "arguments of Concurrency must be given by name after the first, got 5; write "
    "queue=5": lambda: Concurrency(10, 5),
    "queue must be an integer >= 0, got -1": lambda: Concurrency(1, queue=-1),
    "queue must be an integer >= 0 and <= 1000000, got 1000001": (
        lambda: Concurrency(1, queue=1_000_001)
    ),
    "queue must be an integer >= 0, got None": lambda: Concurrency(1, queue=None),
    "max_wait must be a duration > 0, got 0": (
        lambda: Concurrency(1, queue=1, max_wait=0)
    ),
    f"max_wait must be None for a limit without a queue, got '2s'; {QUEUE}": (
        lambda: Concurrency(1, max_wait="2s")
    ),
    f"order must be 'fifo' for a limit without a queue, got 'lifo'; {QUEUE}": (
        lambda: Concurrency(1, order="lifo")
    ),
    "order must be one of 'fifo', 'lifo', got 'newest'": (
        lambda: Concurrency(1, queue=1, order="newest")
    ),
    "name must be a non-empty string, got ' '": lambda: Concurrency(1, name=" "),
    "at_most must be an integer >= 1, got 2.5": lambda: Concurrency(1).resize(2.5),
    "at_most must be a number in a limit that is resized, got Fixed(); it adapts "
    "itself": lambda: Concurrency(Fixed()).resize(2),
    "at_most must be a number, or an algorithm with to_dict(), in data, got Fixed()": (
        lambda: Concurrency(Fixed()).to_dict()
    ),
    "at_most: limit must be a dict whose kind is one of aimd, gradient2, vegas, got "
    "{'kind': 'cubic'}": (lambda: of_concurrency(at_most={"kind": "cubic"})),
    f"at_most must be an integer >= 1, got None; {ADAPTS}": (
        lambda: of_concurrency(at_most=None)
    ),
    "limit must be a dict with the keys kind, at_most, queue, max_wait, order, name, "
    "scope, got {'kind': 'concurrency', 'at_most': 1, 'waiting': 5}": (
        lambda: of_concurrency(at_most=1, waiting=5)
    ),
}

CALL_ERRORS = {
    "the result must be no coroutine, got Awaited(); declare the function with async "
    "def, and await it there": CircuitBreaker(on_result=bool)(Awaited),
    "limiter must be a limiter whose acquire() blocks, where nothing can await it, got "
    f"{ASYNC_LIMIT!r}; use it under aretry, or a threading.Semaphore": (
        lambda: Adapted(ASYNC_LIMIT).acquire().wait()
    ),
    "limiter must be a limiter whose acquire() can be awaited, in an event loop, got "
    "OwnLimit(); a threading.Semaphore would block it: use asyncio.Semaphore": (
        lambda: asyncio.run(Adapted(OwnLimit()).acquire().wait_async())
    ),
}
