"""The message of every ConfigError, and which check raises it."""

import asyncio
import contextlib
import functools
import json
import math
import sys
import tempfile
import threading
import time
import traceback
from datetime import datetime, timedelta
from pathlib import Path
from subprocess import run
from types import FunctionType
from typing import get_args

import pytest

import retrykit
from retrykit import (
    Again,
    ConfigError,
    Failure,
    GiveUp,
    Policy,
    RetryAfter,
    RetrykitError,
    RetryState,
    StopReason,
    aretry,
    aretrying,
    observe,
    policy_of,
    presets,
    resume,
    retry,
    retrying,
    schedules as s,
    state_of,
    with_policy,
)
from retrykit._core.attempt_timeout import with_timeout_argument
from retrykit._core.rules import Rule
from retrykit._core.stream_modes import STREAM_MODES
from retrykit._core.timeouts import AsArgument
from retrykit._internal.validation import check_aware, safe_repr
from retrykit._own_retries import OWN_RETRIES
from retrykit.analysis.html_report import page
from retrykit.analysis.lint import RULES, check, discover
from retrykit.analysis.preview import preview
from retrykit.backoff import Backoff
from retrykit.budgets import (
    FleetBudget,
    RatioBudget,
    Registry,
    Throttle,
    TokenBucket,
    budget_from_dict,
    shared,
)
from retrykit.budgets._base import Budget
from retrykit.conditions import ErrorNames, Excluding, HttpFailures
from retrykit.config import foreign
from retrykit.config._preset_names import parse_preset
from retrykit.config.grpc_service_config import from_service_config, to_service_config
from retrykit.config.rendering import to_python
from retrykit.durable import Job
from retrykit.durable._attempt_replay import check_replayable
from retrykit.durable._job_engine import wrong_status
from retrykit.errors import ErrorCode
from retrykit.hints import (
    attribute,
    first_of,
    grpc_pushback,
    hint_to_text,
    milliseconds,
    parse_hint,
    reset_at,
    retry_after,
)
from retrykit.hints._base import check_hint, parse_answer
from retrykit.hints.grpc import StatusCodes
from retrykit.integrations._airflow_decision import check_policy
from retrykit.integrations.logging import observer
from retrykit.limits import CircuitBreaker
from retrykit.schedules._kinds import SCHEDULE_KINDS
from retrykit.schedules._parsing import parse_schedule
from retrykit.testing import (
    AsyncScriptedFunction,
    FakeClock,
    Recording,
    ScriptedFunction,
    disable_retries,
    limit_retries,
    record,
    strategies,
    virtual_time,
)
from tests._support import required
from tests._support.audit_errors import ERRORS as AUDIT_ERRORS
from tests._support.config_checks import untested_checks
from tests._support.durable_errors import ERRORS as JOB_ERRORS
from tests._support.limit_errors import (
    CALL_ERRORS as LIMIT_CALL_ERRORS,
    ERRORS as LIMIT_ERRORS,
)
from tests._support.optional_trio import trio
from tests._support.preset_errors import ERRORS as PRESET_ERRORS
from tests._support.simulation_errors import ERRORS as SIMULATION_ERRORS
from tests._support.stream_errors import (
    CALL_ERRORS as STREAM_CALL_ERRORS,
    ERRORS as STREAM_ERRORS,
)


def rows():
    yield 1


async def pages():
    yield 1


def doubling(first):
    yield first


def sums(depth):
    parts = ["linear(1)"] * 2**depth
    while len(parts) > 1:
        parts = [f"({a} + {b})" for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


TOO_LONG = "1s" * 5001
SHOWN_OF_IT = f"{TOO_LONG[:199]} [...] {TOO_LONG[-199:]}"


RETRY_POLICY = {
    "maxAttempts": 4,
    "initialBackoff": "0.1s",
    "maxBackoff": "1s",
    "backoffMultiplier": 2,
    "retryableStatusCodes": ["UNAVAILABLE"],
}


def read_retry_policy(**changes):
    """Return a function that reads a gRPC retryPolicy with changed keys."""
    return lambda: from_service_config(RETRY_POLICY | changes)


def read_part(method=None, **keys):
    """Return a function that reads a config with one part, for all methods."""
    config = {"methodConfig": [{"name": [{}], **keys}]}
    return lambda: from_service_config(config, method=method)


def read_throttle(**config):
    """Return a function that reads a config with a throttle."""
    entries = [{"name": [{}], "retryPolicy": RETRY_POLICY}]
    read = {"methodConfig": entries, "retryThrottling": config}
    return lambda: from_service_config(read)


def write_config(method="a.B/C", jitter="proportional", **changes):
    """Return a function that writes a gRPC policy with changed settings."""
    schedule = s.exponential(1).cap(9).jitter(0.2)
    policy = Policy(schedule=schedule, max_attempts=5, on=StatusCodes([14]))
    policy = policy.replace(**changes)
    return lambda: to_service_config(policy, method, jitter=jitter)


def plain() -> int:
    return 1


def returns_policy() -> Policy:
    """Return a policy, where a function to decorate was expected."""


def unannotated():
    return 1


def send(event, channel):
    return event, channel


async def fetch(_outcome=None):
    return True


class AsyncPredicate:
    async def __call__(self, _event): ...

    def __repr__(self):
        return "Asked()"


class Answer:
    def __await__(self):
        yield

    def __repr__(self):
        return "Answer()"


class NegativeSchedule(s.Schedule):
    def delay(self, _retry, _previous, _random, /):
        return -1.0

    bounds = NotImplemented


class CustomSchedule(s.Schedule):
    def delay(self, _retry, _previous, _random, /):
        return 1.0

    def bounds(self, _retry, /):
        return 1.0, 1.0

    def __repr__(self):
        return "mine"


# Its module has it under a name that cannot be written.
UNWRITABLE = globals()["class"] = type("class", (OSError,), {"__module__": __name__})
RETRIED = {"Retry": [{"ErrorEquals": ["States.ALL"]}]}
COVERED = functools.lru_cache(retry(plain))


def enter_nothing():
    turns = iter(retrying())
    next(turns)
    next(turns)


def in_a_file(file, data, name="fetch"):
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        if data is not None:
            Path(file).write_bytes(data)
        Policy.from_toml(file, name)


def in_variables(**texts):
    Policy.from_env("APP", environ={f"APP_{key}": x for key, x in texts.items()})


ONE_SHOT = (number * 0.1 for number in range(5))
HUGE = 10**309
PROPERTY = property(plain)
STATE = RetryState("fetch", seed=7, epoch=0.0)
DONE = RetryState("fetch", seed=7, epoch=0.0, stop_reason=StopReason.SUCCEEDED)
DATA = STATE.to_dict()
FAILURE = Failure(1, OSError(), None, 0.0, 0.0, None)

UNIT = "write the unit (us, ms, s, m, h, d, w)"
SECONDS = 'give seconds as a number, a timedelta, or text such as "1h30m"'
DELAYS = "a schedule, a re-iterable of durations, or a generator function"
KINDS = ", ".join(sorted(SCHEDULE_KINDS))
WAIT = "write constant(...) for the same delay each time"
DELAYED = 'delays such as "1s, 5s, 1m", or an expression such as constant("5s")'
MADE = "made of constructors, methods and operators of schedules"
NAMES = (
    "schedule, max_attempts, max_elapsed, limits, deadline, on, give_up_on, on_result, "
    "exception_groups, rules, hint, hint_cap, on_long_hint, hint_jitter, budget, "
    "admission, on_refused, hedge, attempt_timeout, nested, raises, fallback, "
    "stop_event, sleep, redact, keep_tracebacks, max_failures, seed, observers, name"
)
KINDS_OF_EVENTS = (
    "'attempt_started', 'hedge_started', 'attempt_failed', 'retry_scheduled', "
    "'suspended', 'succeeded', 'gave_up'"
)
OR_SOURCE = "a Policy, or a function that returns one"
OBSERVER = "a sync function that takes an event"
SELECTS = "an Exception type, a tuple of them, or a predicate of the error"
A_HINT = "a string that names a built-in hint"
NAMED = "the name of an exception type, such as OSError or module:Name"
PLAIN = "a sync function where nothing can await it"
CALLS = "a function, or the name of its calls"
NAME = "for a retried block, pass the function around it"
INTERVAL_RULE = "shorter than initial_interval, no longer than 2**31 - 1 ms"
TUPLE = "put the types in a tuple, as (ConnectionError, TimeoutError)"
CAUSE = "write raise GiveUp from error, or raise an error"
LOGGER = "write observer() for an observer, logging.getLogger(name) for a name"
ERRORS = "a list or tuple of Exception types and instances, at least one"
NO_OTHER = "no other is ever retried"
RAISED = "exceptions belong in errors"
LATER = (
    f"its errors are raised where it is iterated: give retry stream={STREAM_MODES}; or "
    "retry that code, or write a block, for attempt in retrying(...), in it"
)

# Errors at the line that writes the setting.
DOTS = "a list in which ... comes last and after an outcome"
GRPC = (
    "maxAttempts, initialBackoff, maxBackoff, backoffMultiplier, retryableStatusCodes"
)
SHORT = '>= 0.001s, such as "0.1s", with at most nine decimals'

SETTING_ERRORS = {
    "wait must be a finite number >= 0, got -1": lambda: s.constant(-1),
    f"wait must be a finite number >= 0, got None; {SECONDS}": lambda: s.constant(None),
    f"wait must be a finite number >= 0, got {HUGE}": (lambda: s.constant(HUGE)),
    "step must be a finite number >= 0, got inf": (lambda: s.linear(math.inf)),
    "step must be a finite number >= 0, got nan": (lambda: s.linear(math.nan, first=1)),
    "first must be a finite number >= 0, got -3": (lambda: s.linear(-1, first=-3)),
    "first must be a finite number >= 0, got nan": (lambda: s.exponential(math.nan)),
    "factor must be a finite number >= 1, got 0.5": lambda: s.exponential(
        1, factor=0.5
    ),
    "rate must be a finite number >= 0, got -1": lambda: s.decay(1, rate=-1),
    f"first must be a finite number >= 0, got None; {SECONDS}": lambda: s.decay(None),
    "exponent must be a finite number >= 0, got -2": lambda: s.polynomial(-2),
    f"first must be a finite number >= 0, got True; {SECONDS}": (
        lambda: s.polynomial(2, first=True)
    ),
    "median_first_retry_delay must be a finite number >= 0, got -1": (
        lambda: s.polly_interval(-1)
    ),
    f"first must be a finite duration >= 0, got {timedelta(-1)!r}": (
        lambda: s.fibonacci(timedelta(-1))
    ),
    "low must be a finite number >= 0, got -1": (lambda: s.uniform(-1, 1)),
    "high must be a finite number >= 0, got -1": (lambda: s.uniform(0, -1)),
    "high must be a finite number >= 2, got 1.0; no shorter than low": (
        lambda: s.uniform(2, 1)
    ),
    "factor must be a finite number >= 1, got nan": (
        lambda: s.decorrelated(1, factor=math.nan)
    ),
    f"first must be a finite number >= 0, got [1]; {SECONDS}": (
        lambda: s.decorrelated([1])
    ),
    'limit must be a duration such as "12.5s", "500ms" or "1h30m", got \'soon\'; '
    f"{UNIT}": lambda: s.linear(1).cap("soon"),
    'limit must be a duration such as "12.5s", "500ms" or "1h30m", got \'-5s\'; '
    f"{UNIT}": lambda: s.linear(1).at_least("-5s"),
    'total must be a duration such as "12.5s", "500ms" or "1h30m", got '
    f"'{'9' * 199} [...] {'9' * 198}s'; {UNIT}": lambda: s.linear(1).within(
        "9" * 400 + "s"
    ),
    'unit must be a duration such as "12.5s", "500ms" or "1h30m", got \'\'; '
    f"{UNIT}": lambda: s.linear(1).round_down(""),
    "unit must be a duration > 0, got 0": lambda: s.linear(1).round_down(0),
    "retries must be an integer >= 0, got -1": lambda: s.linear(1).take(-1),
    "seed must be an int, got '7'": lambda: s.linear(1).draw("7"),
    "after must be an integer >= 0, got 1.5": (
        lambda: s.linear(1).switch(after=1.5, to=[1])
    ),
    "factor must be a finite number >= 0 and <= 1, got 2": (
        lambda: s.linear(1).jitter(2)
    ),
    "factor must be a finite number >= 0, got -3": lambda: s.linear(1) * -3,
    "schedule must be finite, since .then() starts after its end, got "
    "linear(1.0); give it a length with .take(n)": lambda: s.linear(1).then([1]),
    "schedule must be a list with a last delay to repeat, got []": (
        lambda: s.sequence([], repeat_last=True)
    ),
    "repeat_last must be a bool, got 1": lambda: s.sequence([1], repeat_last=1),
    f"schedule must be {DELAYS}, got 5; {WAIT}": (lambda: Policy(schedule=5)),
    f"schedule must be {DELAYS}, got '5s'; {WAIT}": (lambda: Policy(schedule="5s")),
    "schedule must be an ordered iterable, got {1}; write a list": (
        lambda: Policy(schedule={1})
    ),
    f"schedule must be re-iterable, got the one-shot {ONE_SHOT!r}; pass a list, a "
    "generator function, or an object whose __iter__ starts over": (
        lambda: Policy(schedule=ONE_SHOT)
    ),
    "schedule must be a generator function that can be called without arguments, got "
    f"{doubling!r}; bind them with functools.partial": (
        lambda: Policy(schedule=doubling)
    ),
    "schedule[1] must be a finite number >= 0, got -1": (
        lambda: Policy(schedule=[1, -1])
    ),
    "max_attempts must be an integer >= 1, got 0; the first attempt counts; "
    "None is unlimited": lambda: Policy(max_attempts=0),
    f"max_attempts must be a value, got {len!r}; for settings at run time write "
    "retry(policy=function)": lambda: Policy(max_attempts=len),
    f"fn must be a function to retry, got {returns_policy!r}; write "
    "retry(policy=returns_policy)": lambda: retry(returns_policy),
    f"fn must be a function to retry, got {returns_policy!r}; write "
    "aretry(policy=returns_policy)": lambda: aretry(returns_policy, max_attempts=2),
    "max_attempts must be an integer >= 1, got True; the first attempt counts; "
    "None is unlimited": lambda: Policy(max_attempts=True),
    f"max_attempts must be an integer >= 1 and <= {2**53 - 1}, got {2**53}; the "
    "first attempt counts; None is unlimited": lambda: Policy(max_attempts=2**53),
    "max_elapsed must be a finite number >= 0, got -1": (
        lambda: Policy(max_elapsed=-1)
    ),
    "deadline must be one of 'stop', 'clip', 'overshoot', got 30; for a time limit "
    "use max_elapsed": lambda: Policy(deadline=30),
    "deadline must be 'stop' where max_elapsed is None, got 'clip'; "
    "set max_elapsed, or deadline='stop'": (
        lambda: Policy(deadline="clip", max_elapsed=None)
    ),
    "deadline must be 'stop' where max_elapsed is None, got 'overshoot'; "
    "set max_elapsed, or deadline='stop'": (
        lambda: presets.google().replace(max_elapsed=None)
    ),
    "max_elapsed must be at least 30s, the first delay, or nothing is ever retried, "
    "got 10.0; for a single attempt write max_attempts=1": (
        lambda: Policy(schedule=["30s"], max_elapsed="10s")
    ),
    "schedule must be at least one delay, or nothing is ever retried, got "
    "sequence([]); for a single attempt write max_attempts=1": (
        lambda: retry(schedule=[])
    ),
    "max_attempts must be at most 3, since the schedule ends after 2 delays, got 4; "
    "with limits='any' the first that is reached ends a call": lambda: Policy(
        schedule=[1, 2], max_attempts=4, max_elapsed=9, limits="all"
    ),
    "on must be at least one Exception type where no result is judged, got (); write "
    "Exception, or on_result": lambda: Policy(on=()),
    f"on must be {SELECTS}, got 'OSError'; name the type itself, without quotes": (
        lambda: Policy(on="OSError")
    ),
    f"on must be {SELECTS}, got [<class 'OSError'>]; {TUPLE}": (
        lambda: Policy(on=[OSError])
    ),
    f"on must be {SELECTS}, got OSError | KeyError; {TUPLE}": (
        lambda: Policy(on=OSError | KeyError)
    ),
    f"on must be {SELECTS}, got OSError('busy'); name its type, OSError": (
        lambda: Policy(on=OSError("busy"))
    ),
    f"on must be a predicate that takes the error, got {unannotated!r}": (
        lambda: Policy(on=unannotated)
    ),
    f"on must be {SELECTS}, got <class 'int'>": lambda: Policy(on=int),
    f"on must be {SELECTS}, got (<class 'OSError'>, 5)": lambda: Policy(
        on=(OSError, 5)
    ),
    "on must be an Exception type, since no other is ever retried, got "
    "<class 'BaseException'>; write Exception, or narrower": (
        lambda: retry(on=BaseException)
    ),
    "give_up_on must be an Exception type, since no other is ever retried, got "
    "<class 'KeyboardInterrupt'>; write Exception, or narrower": (
        lambda: Policy(give_up_on=(OSError, KeyboardInterrupt))
    ),
    "give_up_on must be narrower than on, or nothing is ever retried, got "
    "<class 'OSError'>; on is (ConnectionError, TimeoutError)": (
        lambda: Policy(on=(ConnectionError, TimeoutError), give_up_on=OSError)
    ),
    "on_result must be a predicate of the result, got 5; write a function": (
        lambda: Policy(on_result=5)
    ),
    f"on_result must be a predicate that takes the result, got {unannotated!r}": (
        lambda: Policy(on_result=unannotated)
    ),
    "raises must be one of 'last', 'retry_error', 'group', got 'all'": (
        lambda: Policy(raises="all")
    ),
    "redact must be True, False or a function of the text, got 'no'": lambda: Policy(
        redact="no"
    ),
    f"redact must be a function that takes the text, got {plain!r}": lambda: Policy(
        redact=plain
    ),
    f"redact must be a sync function, even under aretry, got {fetch!r}; it returns "
    "the text without secrets": lambda: Policy(redact=fetch),
    "keep_tracebacks must be True or False, got 1": lambda: Policy(keep_tracebacks=1),
    "max_failures must be an integer >= 2, got 1; the first and the last are "
    "always kept": lambda: Policy(max_failures=1),
    "seed must be an integer >= 0, got 0.5": lambda: Policy(seed=0.5),
    f"observers must be a list of functions that take an event, got {print!r}; "
    "put brackets around it": lambda: Policy(observers=print),
    "observers[1] must be a function that takes an event, got 5": (
        lambda: Policy(observers=[print, 5])
    ),
    "observers['gave_up'] must be a function that takes an event, got 5": (
        lambda: Policy(observers={"gave_up": 5})
    ),
    f"observers must be one of {KINDS_OF_EVENTS}, got 'failed'": (
        lambda: Policy(observers={"failed": print})
    ),
    f"observers must be {PLAIN}, got {fetch!r}; async functions need aretry": (
        lambda: retry(observers=[fetch])(plain)
    ),
    f"observer must be {OBSERVER}, got {fetch!r}; to await something, start a task in "
    "it": lambda: observe(fetch),
    f"observer must be {OBSERVER}, got Asked(); to await something, start a task in "
    "it": lambda: observe(AsyncPredicate()),
    "observers[0] must be a function that takes the event, and nothing else, got "
    f"{unannotated!r}; if it returns an observer, call it": (
        lambda: Policy(observers=[unannotated])
    ),
    "observer must be a function that takes the event, and nothing else, got "
    f"{send!r}": lambda: observe(send),
    "observer must be a function that takes an event, got 5": lambda: observe(5),
    "name must be a non-empty string, got ' '; None uses the name of the function": (
        lambda: Policy(name=" ")
    ),
    "name must be encodable as UTF-8, got '\\udcff'": (lambda: Policy(name="\udcff")),
    "max_attemps is not a policy setting, got 3; did you mean max_attempts?": (
        lambda: Policy().replace(max_attemps=3)
    ),
    f"color is not a policy setting, got 3; the settings are {NAMES}": (
        lambda: retry(color=3)
    ),
    "base is not a parameter of exponential, got 2; write factor": (
        lambda: s.exponential(base=2)
    ),
    "multiplier is not a parameter of exponential, got 2; write first or factor": (
        lambda: s.exponential(1, multiplier=2)
    ),
    "max is not a parameter of exponential, got 9; write .cap(...) on the schedule": (
        lambda: s.exponential(1, max=9)
    ),
    "faktor is not a parameter of exponential, got 2; did you mean factor?": (
        lambda: s.exponential(1, faktor=2)
    ),
    "foo is not a parameter of exponential, got 2; the parameters are first, factor": (
        lambda: s.exponential(1, foo=2)
    ),
    "arguments of exponential must be given by name after the first, got 2; write "
    "factor=2": lambda: s.exponential(1, 2),
    "exponential takes 1 argument without a name, got 2": (
        lambda: s.exponential(1, 3, factor=2)
    ),
    "exponential must be given a value for first": s.exponential,
    "first must be given once, got 2": lambda: s.exponential(1, first=2),
    "constant takes 1 argument, got 2": lambda: s.constant(1, 2),
    "full_jitter takes no arguments, got 1": lambda: s.constant(1).full_jitter(0.5),
    "max_value is not a parameter of full_jitter, got 2": (
        lambda: s.constant(1).full_jitter(max_value=2)
    ),
    "arguments of resume must be given by name after the first 3, got 5; write "
    "max_attempts=5": lambda: resume(plain, STATE, None, 5),
    "max_tries is not a parameter of Rule, got 3; "
    "write max_attempts, which includes the first attempt": (
        lambda: Rule(on=OSError, max_tries=3)
    ),
    "seed is not a parameter of Rule, got 3; write it in the policy": (
        lambda: Rule(on=OSError, seed=3)
    ),
    "arguments of Policy must be given by name, got <class 'OSError'>; "
    "write on=OSError": lambda: Policy(OSError),
    "arguments of Policy must be given by name, got 3; write max_attempts=3": (
        lambda: Policy(3)
    ),
    "arguments of Policy must be given by name, got '2m'; write max_elapsed='2m'": (
        lambda: Policy("2m")
    ),
    "arguments of Policy must be given by name, got Throttle(); "
    "write budget=Throttle()": lambda: Policy(Throttle()),
    "arguments of Policy must be given by name, got 'soon'": lambda: Policy("soon"),
    "arguments of replace must be given by name, got constant(1.0); "
    "write schedule=constant(1.0)": lambda: Policy().replace(s.constant(1)),
    "arguments of retry must be given by name after the first, got 4; "
    "write max_attempts=4": lambda: retry(OSError, 4),
    "policy must be a Policy, got 'x'; name the setting, as in "
    "retry(max_attempts=...)": lambda: retry("x"),
    f"schedule must be {DELAYS}, got {s.exponential!r}; call it: exponential(...)": (
        lambda: Policy(schedule=s.exponential)
    ),
    # decorators and other functions that take a function
    f"policy must be a Policy, got {[1, 2]!r}; write retry(schedule=[1, 2])": (
        lambda: retry([1, 2])
    ),
    f"policy must be a Policy beside other settings, got {plain!r}; write "
    "aretry(...)(fn), or @aretry(...) above it": lambda: aretry(plain, max_attempts=2),
    "policy must be given once, got Policy()": (
        lambda: retry(Policy(), policy=Policy())
    ),
    f"policy must be {OR_SOURCE}, got 5; write max_attempts=5": lambda: with_policy(
        plain, 5
    ),
    f"policy must be {OR_SOURCE}, got 6; write max_attempts=6": lambda: retrying(6),
    f"policy must be {OR_SOURCE}, got 7; write max_attempts=7": lambda: aretrying(7),
    f"policy must be {OR_SOURCE}, got 8; write max_attempts=8": lambda: resume(
        plain, STATE, 8
    ),
    "policy must be a Policy, or a sync function that returns one, got "
    f"{doubling!r}": lambda: retry(policy=doubling),
    "state must be a RetryState, got {}; RetryState.from_dict makes one": (
        lambda: resume(plain, {})
    ),
    f"state must be of a call that has not succeeded, got {DONE!r}; there is nothing "
    "to resume": (lambda: resume(plain, DONE)),
    "outcome must be an exception or a response, got 'busy'; "
    "pass what an except clause caught": lambda: state_of("busy"),
    "policy must be a Policy, got constant(1.0); write Policy(schedule=...)": (
        lambda: Backoff(s.constant(1))
    ),
    "clock must be a clock, with a method now, got 5": lambda: Backoff(Policy(), 5),
    f"logger must be a logger, got 'shop'; {LOGGER}": lambda: observer("shop"),
    "levels must be a dict, got 'INFO'": lambda: observer(levels="INFO"),
    f"levels must be one of {KINDS_OF_EVENTS}, got 'failed'": (
        lambda: observer(levels={"failed": "INFO"})
    ),
    "levels['gave_up'] must be a level of logging, such as 'INFO', or None for no "
    "record, got 'LOUD'": lambda: observer(levels={"gave_up": "LOUD"}),
    "state must be a RetryState, got []; RetryState.from_dict makes one": (
        lambda: retrying(state=[])
    ),
    "fn must be a function, got <class 'int'>; decorate a function "
    "that creates the object": lambda: retry(int),
    f"fn must be a function, got {PROPERTY!r}; put the decorator below the property": (
        lambda: retry(PROPERTY)
    ),
    "fn must be a function or another callable, got 5": lambda: Policy().call(5),
    f"fn must be a function that runs when it is called, not a generator function, "
    f"got {rows!r}; {LATER}": lambda: retry(rows),
    f"fn must be a function that runs when it is called, not a generator function, "
    f"got {pages!r}; {LATER}": lambda: aretry(pages),
    f"fn must be a function that is not async, got {fetch!r}; use acall or arun, or "
    "decorate it with retry or aretry": lambda: Policy().call(fetch),
    "fn must be a coroutine function, or one that returns an awaitable, under aretry, "
    f"got {plain!r}; decorate it with retry": lambda: aretry(plain),
    f"fn must be decorated with retry or aretry, got {plain!r}": (
        lambda: policy_of(plain)
    ),
    f"on must be {PLAIN}, got {fetch!r}; async functions need aretry": (
        lambda: retry(on=fetch)(plain)
    ),
    f"on_result must be {PLAIN}, got {fetch!r}; put the block into a function under "
    "aretry": lambda: aretrying(Policy(on_result=fetch)),
    # signals
    "delay must be a finite number >= 0, got -1": lambda: RetryAfter(-1),
    "cause must be an exception (an instance of Exception), got 'busy'; write raise "
    "RetryAfter from error, or raise an error": lambda: RetryAfter(1, "busy"),
    f"cause must be an exception (an instance of Exception), got {OSError}; {CAUSE}": (
        lambda: GiveUp(OSError)
    ),
    "cause must be an exception (an instance of Exception), got KeyboardInterrupt(); "
    f"{CAUSE}": lambda: GiveUp(KeyboardInterrupt()),
    # presets
    "initial_interval must be a finite number >= 0.001, got 0.0": (
        lambda: presets.google(initial_interval=0)
    ),
    "initial_interval must be a finite number >= 0, got -1": (
        lambda: presets.google(initial_interval=-1)
    ),
    "randomization_factor must be a number >= 0 and < 1, got 1": (
        lambda: presets.google(randomization_factor=1)
    ),
    "multiplier must be a finite number >= 1, got 0.9": (
        lambda: presets.google(multiplier=0.9)
    ),
    "max_interval must be a finite number >= 0.5 and <= 2.14748e+06, got 0.25; no "
    f"{INTERVAL_RULE}": lambda: presets.google(max_interval="250ms"),
    "initial_interval must be a finite number >= 0.001, got 0.0005": (
        lambda: s.google_interval("500us")
    ),
    "max_interval must be a finite number >= 2 and <= 2.14748e+06, got 1.0; no "
    f"{INTERVAL_RULE}": (lambda: s.google_interval(2, max_interval=1)),
    "max_interval must be a finite number >= 0, got nan": (
        lambda: s.google_interval(2, max_interval=math.nan)
    ),
    "randomization_factor must be a finite number >= 0 and <= 1, got 1.5": (
        lambda: s.google_interval(randomization_factor=1.5)
    ),
    "randomization_factor must be a number >= 0 and < 1, got 1.0": (
        lambda: s.google_interval(randomization_factor=1.0)
    ),
    f"max_elapsed_time must be a finite number >= 0, got None; {SECONDS}": (
        lambda: presets.google(max_elapsed_time=None)
    ),
    "max_elapsed_time must be a duration > 0, got '0s'": (
        lambda: presets.google(max_elapsed_time="0s")
    ),
    "retry_limit must be an integer >= 0, got -1": (
        lambda: presets.zizq(retry_limit=-1)
    ),
    "base must be a finite number >= 0, got -1": (lambda: presets.zizq(base=-1)),
    "jitter must be a finite number >= 0, got inf": (
        lambda: presets.zizq(jitter=math.inf)
    ),
    "use_jitter must be True or False, got 'yes'": (
        lambda: presets.taskiq(use_jitter="yes")
    ),
    "interval must be a duration, or a list of at least one, got []": (
        lambda: presets.rq(interval=[])
    ),
    "interval must be a finite number >= 0, got -1": (
        lambda: presets.rq(interval=[5, -1])
    ),
    "preset must be the name of one, got 'zizk'; did you mean zizq?": lambda: (
        parse_preset("zizk")
    ),
    "preset must be zizq, or zizq:parameter=value,... with each parameter once, got "
    "'zizq:retry_limit'": lambda: parse_preset("zizq:retry_limit"),
    # data
    "policy must be a dict of settings, got []": lambda: Policy.from_dict([]),
    "policy must be a dict of settings, got {1: 2}": lambda: Policy.from_dict({1: 2}),
    "deadlines is not a policy setting, got 'stop'; did you mean deadline?": (
        lambda: Policy.from_dict({"deadlines": "stop"})
    ),
    f"on must be {NAMED}, got 'NoSuchError'; write module:Name for a type that is "
    "not built in": (lambda: Policy.from_dict({"on": "NoSuchError"})),
    f"on must be {NAMED}, got 'os:system'; os has no such type": (
        lambda: Policy.from_dict({"on": "os:system"})
    ),
    f"on must be {NAMED}, got 'shop.errors:Busy'; import shop.errors first": (
        lambda: Policy.from_dict({"on": ["OSError", "shop.errors:Busy"]})
    ),
    "schedule must be a string, or a list of durations, got 5": (
        lambda: Policy.from_dict({"schedule": 5})
    ),
    "schedule must be written in at most 100000 characters, got "
    f"{safe_repr(repr(s.sequence([1] * 30_000)))}": (
        lambda: Policy(schedule=[1] * 30_000).to_dict()
    ),
    "max_attempts must be an integer >= 1, got 0; the first attempt counts; "
    "'unlimited' is no limit": lambda: Policy.from_dict({"max_attempts": 0}),
    # expressions
    "schedule must be a str, got 5": lambda: parse_schedule(5),
    "schedule must be a string of at most 100000 characters, got "
    f"{safe_repr(('5, ' * 40_000).strip())}": (lambda: parse_schedule("5, " * 40_000)),
    "schedule must be an expression of at most 100 levels, got "
    f"'{'-' * 199} [...] {'-' * 190}linear(1)'": (
        lambda: parse_schedule("-" * 5000 + "linear(1)")
    ),
    f"schedule must be {DELAYED}, got '5s'; "
    'write constant("5s") for the same delay each time, or ["5s"] for one retry': (
        lambda: parse_schedule("5s")
    ),
    'schedule[1] must be a duration such as "12.5s", "500ms" or "1h30m", got \'5\'; '
    f"{UNIT}": lambda: parse_schedule("1s, 5"),
    "schedule must be an expression, got 'linear(1'; '(' was never closed": (
        lambda: parse_schedule("linear(1")
    ),
    f"schedule must be {MADE}, got 'lineer'; did you mean linear(...)?": (
        lambda: parse_schedule("lineer(1)")
    ),
    "schedule must be made with the methods of schedules, got '.kap'; did you mean "
    "cap?": lambda: parse_schedule("linear(1).kap(3)"),
    "schedule must be made with linear(step, first), got 'linear(stap=1)'; did you "
    "mean step?": lambda: parse_schedule("linear(stap=1)"),
    "observers must be left out of a policy that is written as data, got "
    f"{(print,)!r}; leave it out, and add it with .replace(observers=...)": (
        lambda: Policy(observers=[print]).to_dict()
    ),
    "fallback must be left out of a policy that is written as data, got None; leave "
    "it out, and add it with .replace(fallback=...)": (
        lambda: Policy(fallback=None).to_dict()
    ),
    "rules[0]: on_result must be left out of a policy that is written as data, got "
    f"{callable!r}; leave it out, and add it with .replace(on_result=...)": (
        lambda: Policy(rules=[Rule(on_result=callable, max_attempts=2)]).to_dict()
    ),
    "schedule must be made of retrykit's own parts, to be written as data, got mine; "
    "list its delays": lambda: Policy(schedule=CustomSchedule()).to_dict(),
    f"fn must be a function whose outermost decorator is retry or aretry, "
    f"got {COVERED!r}; put retry above the other decorator": lambda: with_policy(
        COVERED
    ),
    "on must be importable exception types in a policy that is written as data, "
    f"got {callable!r}; leave it out, and add it with .replace(on=...)": lambda: Policy(
        on=callable
    ).to_dict(),
    "schedule must be made of retrykit's own parts, to be written as data, got "
    "sequence(rows); list its delays": lambda: Policy(schedule=rows).to_dict(),
    "state.attempt must be as retrykit wrote it, got 'three'; it is not of type int": (
        lambda: RetryState.from_dict(DATA | {"attempt": "three"})
    ),
    "state.rule_counts must be as retrykit wrote it, got (2,); they are more than "
    "there were attempts": lambda: RetryState.from_dict(DATA | {"rule_counts": [2]}),
    "state must be as retrykit wrote it, got []; it is not a dict": (
        lambda: RetryState.from_dict([])
    ),
    "state.version must be as retrykit wrote it, got None; it is missing": (
        lambda: RetryState.from_dict({})
    ),
    "state.version must be as retrykit wrote it, got 2; it is not 1": (
        lambda: RetryState.from_dict(DATA | {"version": 2})
    ),
    "state.color must be as retrykit wrote it, got 5; it is unknown": (
        lambda: RetryState.from_dict(DATA | {"color": 5})
    ),
    # files
    "path must be the path of a file, got 5": lambda: Policy.from_toml(5, "fetch"),
    "no.toml must be a readable file, got 'No such file or directory'": (
        lambda: in_a_file("no.toml", None)
    ),
    "a.toml, line 2, must be text in UTF-8, got b'\\xff'": (
        lambda: in_a_file("a.toml", b"x = 1\n\xff")
    ),
    "a.json must be a JSON object, got []": lambda: in_a_file("a.json", b"[]"),
    "name must be a str, got 7": lambda: in_a_file("a.toml", b"[policies]", 7),
    "name must be the name of a policy in a.toml, got 'fetch'; the file has none": (
        lambda: in_a_file("a.toml", b"[policies]")
    ),
    "a.toml must be a file with a table [policies.NAME] for each policy, got []; in "
    "pyproject.toml, under [tool.retrykit]": lambda: in_a_file("a.toml", b""),
    "a.toml, policy 'fetch': policy must be a table of settings, got 5": (
        lambda: in_a_file("a.toml", b"policies.fetch = 5")
    ),
    "a.toml, policy 'fetch': extends must be a str, got 5": (
        lambda: in_a_file("a.toml", b"policies.fetch.extends = 5")
    ),
    "a.toml, policy 'fetch': extends must be a policy that does not extend this one, "
    "got 'fetch'; fetch -> fetch": (
        lambda: in_a_file("a.toml", b"policies.fetch.extends = 'fetch'")
    ),
    "a.toml, policy 'fetch': extends must be a policy in the same file, or a preset, "
    "got 'ftch'; did you mean fetch?": (
        lambda: in_a_file("a.toml", b"policies.fetch.extends = 'ftch'")
    ),
    # environment
    "prefix must be a str, got 5": lambda: Policy.from_env(5),
    "prefix must be a name such as APP_RETRY, got '_'": lambda: Policy.from_env("_"),
    "base must be a Policy, got {}; write Policy(...)": (
        lambda: Policy.from_env("APP", base={}, environ={})
    ),
    "APP_SEED must be a str, got 7": lambda: in_variables(SEED=7),
    "APP_MAX_ATTEMPTS must be left out if APP_RETRY_LIMIT is given, got '4'": (
        lambda: in_variables(MAX_ATTEMPTS="4", RETRY_LIMIT="3")
    ),
    "APP_RETRY_LIMIT must be an integer >= 0, got 'ten'": (
        lambda: in_variables(RETRY_LIMIT="ten")
    ),
    "APP_BACKOFF_BASE must be given together with APP_BACKOFF_EXPONENT and "
    "APP_BACKOFF_JITTER, got '5s'; they are one formula": (
        lambda: in_variables(BACKOFF_BASE="5s")
    ),
    "APP_BACKOFF_EXPONENT must be a finite number >= 0, got 'x'": lambda: in_variables(
        BACKOFF_BASE="5s", BACKOFF_EXPONENT="x", BACKOFF_JITTER="5"
    ),
    "APP_BACKOFF_BASE must be a number of milliseconds, or a duration such as "
    "\"12.5s\", got '-5'": lambda: in_variables(
        BACKOFF_BASE="-5", BACKOFF_EXPONENT="4", BACKOFF_JITTER="5"
    ),
    'APP_MAX_ELAPSED must be a duration with its unit, such as "90s" or "1h30m", or '
    "unlimited, got '90'": lambda: in_variables(MAX_ELAPSED="90"),
    # timeouts of attempts
    "name must be the name of a parameter, got 'time out'": (
        lambda: AsArgument(5, name="time out")
    ),
    "name must be the name of a parameter, got None": lambda: AsArgument(5, name=None),
    'seconds must be a duration such as "12.5s", "500ms" or "1h30m", got \'5\'; write '
    "the unit (us, ms, s, m, h, d, w)": (lambda: AsArgument("5")),
    "seconds must be a duration > 0, got '0s'": (lambda: AsArgument("0s")),
    "fn must be a function with a parameter 'timeout' that takes its timeout, got "
    f"{plain!r}; name its parameter: AsArgument(5, name=...)": (
        lambda: with_timeout_argument(plain, AsArgument("5s"), float)
    ),
    "fn must be a function with a parameter 'timeout' that takes its timeout, got "
    f"{vars!r}; it has no signature: call it in a function that has one": (
        lambda: with_timeout_argument(vars, AsArgument("5s"), float)
    ),
    # testing
    "duration must be a duration >= 0, got -1; time does not go back": (
        lambda: FakeClock().advance(-1)
    ),
    "delay must be a duration >= 0, got -0.5; time does not go back": (
        lambda: FakeClock().sleep(-0.5)
    ),
    "delay must be a finite number >= 0, got nan": (
        lambda: FakeClock().sleep(math.nan)
    ),
    "start must be a finite number >= 0, got -5": lambda: virtual_time(start=-5),
    "stall_timeout must be a finite number >= 0, got inf": (
        lambda: virtual_time(stall_timeout=math.inf)
    ),
    # testing
    "max_attempts must be an integer >= 1, got 0; the first attempt counts": (
        lambda: limit_retries(0)
    ),
    "max_attempts must be an integer >= 1, got True; the first attempt counts": (
        lambda: limit_retries(max_attempts=True)
    ),
    "outcomes must be a list, got 'ok'; write ScriptedFunction([...]), errors and "
    "values in their order": lambda: ScriptedFunction("ok"),
    "schedule must be of at most 100 levels, got 101": (
        lambda: parse_schedule(f"fibonacci(){'.cap(1)' * 100}")
    ),
    "schedule must be of at most 1000 parts, got 1001": (
        lambda: parse_schedule(sums(10))
    ),
    "schedule must be text that can be encoded in UTF-8, got \"constant('\\ud800')\"": (
        lambda: parse_schedule("constant('\ud800')")
    ),
    "APP_SCHEDULE must be encodable as UTF-8, got 'constant(\\udcff)'": (
        lambda: Policy.from_env("APP", environ={"APP_SCHEDULE": "constant(\udcff)"})
    ),
    f"limit must be a string of at most 10000 characters, got '{SHOWN_OF_IT}'": (
        lambda: s.linear(1).cap(TOO_LONG)
    ),
    "observers must be left out of a policy that is read from data, got []; "
    "add it with .replace(observers=...)": lambda: Policy.from_dict({"observers": []}),
    "on must be types that Python can import by their names, got "
    f"{UNWRITABLE!r}": lambda: to_python("mine", Policy(on=UNWRITABLE)),
    "jitter must be one of 'proportional', 'full', got 'none'": lambda: (
        from_service_config({}, jitter="none")
    ),
    "jitter must be one of 'proportional', 'full', got 0.2": write_config(jitter=0.2),
    "config must be JSON, got '{'; Expecting property name enclosed in double quotes: "
    "line 1 column 2 (char 1)": lambda: from_service_config("{"),
    "config must be JSON, got '{\"a\": NaN}'; NaN is not in the JSON of gRPC": lambda: (
        from_service_config('{"a": NaN}')
    ),
    'config must be JSON, got \'{"a": 1, "a": 1}\'; repeated keys: a': lambda: (
        from_service_config('{"a": 1, "a": 1}')
    ),
    "config must be a service config or a retryPolicy, as a dict or as JSON, got []": (
        lambda: from_service_config("[]")
    ),
    "config must be a service config or a retryPolicy, as a dict or as JSON, got 5": (
        lambda: from_service_config(5)
    ),
    "method must be left out with a single retryPolicy, got 'a.B/C'": (
        lambda: from_service_config({}, method="a.B/C")
    ),
    f"retryPolicy must be a dict with the keys {GRPC}, got {{}}; a whole service "
    "config has the key methodConfig": lambda: from_service_config({}),
    "retryThrottling must be a dict with the keys maxTokens, tokenRatio, got "
    "{'maxTokens': 9}": read_throttle(maxTokens=9),
    "maxTokens must be an integer from 1 to 4294967295, got 0": read_throttle(
        maxTokens=0, tokenRatio=0.1
    ),
    "max_tokens must be an integer from 1 to 1000, got 1001": write_config(
        budget=Throttle(1001)
    ),
    "token_ratio must be a number from 0.001 to 4294967, without an exponent, got "
    "1e+16": write_config(budget=Throttle(10, 1e16)),
    "tokenRatio must be a number from 0.001 to 4294967, without an exponent, got 0": (
        read_throttle(maxTokens=10, tokenRatio=0)
    ),
    "budget must be a Throttle, got TokenBucket(); gRPC has no other": (
        write_config(budget=TokenBucket())
    ),
    "hint must be grpc_pushback() in a policy for gRPC, got retry_after(); write "
    ".replace(hint=grpc_pushback())": write_config(hint=retry_after()),
    "hedgingPolicy must be left out, got {'maxAttempts': 2}; write hedge=Hedge(...) in "
    "a Policy": read_part(hedgingPolicy={"maxAttempts": 2}),
    "methodConfig must be a list of dicts, got {}": lambda: from_service_config(
        {"methodConfig": {}}
    ),
    "methodConfig must be a list with unique names, got ['/', '/']": read_part(
        name=[{}, {"service": None}]
    ),
    "name must be a dict of strings, got {'service': 5}": read_part(
        name=[{"service": 5}]
    ),
    "name must be a method with its service, got {'method': 'C'}": read_part(
        name=[{"method": "C"}]
    ),
    "method must be one that the config retries: none, got None": read_part(),
    "method must be one that the config retries: /, got 'a.B/C'; without "
    "retries, write Policy(max_attempts=1)": lambda: from_service_config(
        {
            "methodConfig": [
                {"name": [{}], "retryPolicy": RETRY_POLICY},
                {"name": [{"service": "a.B"}]},
            ]
        },
        method="a.B/C",
    ),
    "method must be like \"package.Service/Method\", got 'a/b/c'": read_part("a/b/c"),
    "maxAttempts must be an integer from 2 to 2147483647, got 1": read_retry_policy(
        maxAttempts=1
    ),
    f"initialBackoff must be {SHORT}, got '0s'": read_retry_policy(initialBackoff="0s"),
    f"maxBackoff must be {SHORT}, got 1": read_retry_policy(maxBackoff=1),
    'methodConfig[0]: timeout must be >= 0s, such as "0.1s", with at most nine '
    "decimals, got '1m'": read_part(timeout="1m"),
    "methodConfig[0]: waitForReady must be true or false, got 'true'": read_part(
        waitForReady="true"
    ),
    "backoffMultiplier must be a number > 0, got 0": read_retry_policy(
        backoffMultiplier=0
    ),
    "retryableStatusCodes must be a list of names of status codes, at least one, got "
    "['unavailable']; gRPC reads neither numbers nor small letters": (
        read_retry_policy(retryableStatusCodes=["unavailable"])
    ),
    "retryableStatusCodes must be a list of names of status codes, at least one, got "
    "[]": read_retry_policy(retryableStatusCodes=[]),
    "codes must be a list of status codes, at least one, got []": (
        lambda: StatusCodes([])
    ),
    "codes must be names of status codes of failures, or their numbers, 1 to 16, got "
    "'OK'": lambda: StatusCodes([14, "OK"]),
    'statuses must be a list of statuses, 100 to 599, and classes such as "5xx", got '
    "'5xx'": lambda: HttpFailures("5xx"),
    "statuses must be at least one, got (); or set connections=True": HttpFailures,
    "names must be a list of names, at least one, got 'Busy'": (
        lambda: ErrorNames("Busy")
    ),
    "types must be a list of exception types, at least one, got []": (
        lambda: Excluding([])
    ),
    "on must be the name of an exception type, or one of name=Name, http=503, "
    "http=5xx, http=connections, grpc=UNAVAILABLE, not=OSError, got 'nme=Busy'; did "
    "you mean name?": lambda: Policy.from_dict({"on": "nme=Busy"}),
    'on_result must be a text such as "http=503" or "http=5xx", or a list of them, got '
    "'OSError'; add another predicate with .replace(on_result=...)": (
        lambda: Policy.from_dict({"on_result": "OSError"})
    ),
    "source must be the path of a file, or data, got 5": lambda: foreign.read(5),
    "name must be the name of one of its policies, got 'A'; the names are Get": (
        lambda: foreign.read({"Get": RETRIED}, "A")
    ),
    f"format must be one of {', '.join(map(repr, foreign.FORMATS))}, got 'x'": (
        lambda: foreign.names({}, format="x")
    ),
    "policy must be a Policy, got None": lambda: to_service_config(None),
    "deadline must be 'stop' in a policy for gRPC, got 'clip'; write "
    ".replace(deadline='stop')": write_config(deadline="clip", max_elapsed=9),
    "name must be None in a policy for gRPC, got 'add'; write .replace(name=None)": (
        write_config(name="add")
    ),
    f'on must be a StatusCodes, got {OSError}; write StatusCodes(["UNAVAILABLE"])': (
        write_config(on=OSError)
    ),
    "max_attempts must be an integer from 2 to 5, got None": write_config(
        max_attempts=None
    ),
    "schedule must be a capped exponential with gRPC's jitter, such as exponential("
    "0.1, factor=2.0).cap(1.0).full_jitter(), got exponential(1.0, factor=2.0).cap(9.0)"
    ".jitter(0.2); jitter='full' requires this form": write_config(jitter="full"),
    "max_elapsed must be from a millisecond to 315576000000 seconds, for gRPC, "
    "got 1e+300": (write_config(max_elapsed=1e300)),
    "first must be from a millisecond to 315576000000 seconds, for gRPC, got 0.0": (
        write_config(schedule=s.exponential(0).cap(9).jitter(0.2))
    ),
    "limit must be from a millisecond to 315576000000 seconds, for gRPC, got 1e+300": (
        write_config(schedule=s.exponential(1).cap(1e300).jitter(0.2))
    ),
    f"outcomes must be a list, got {OSError!r}; write ScriptedFunction([...]), errors "
    "and values in their order": lambda: AsyncScriptedFunction(OSError),
    f"outcomes must be {DOTS}, got [Ellipsis]; it repeats that outcome": (
        lambda: ScriptedFunction([...])
    ),
    f"outcomes must be {DOTS}, got [Ellipsis, 'ok']; it repeats that outcome": (
        lambda: AsyncScriptedFunction([..., "ok"])
    ),
    "at_least must be a finite number >= 0, got -1": (lambda: strategies.durations(-1)),
    "at_most must be a finite number >= 0, got inf": (
        lambda: strategies.durations(at_most=math.inf)
    ),
    "at_most must be a finite number >= 60, got 5.0": (
        lambda: strategies.durations("1m", "5s")
    ),
    "correlated must be a bool, got 'no'": lambda: strategies.schedules(
        correlated="no"
    ),
    "rounding must be a bool, got None": lambda: strategies.schedules(rounding=None),
    "max_leaves must be an integer >= 1, got 0": (
        lambda: strategies.schedules(max_leaves=0)
    ),
    "schedules must be a SearchStrategy, got linear(1.0); write "
    "hypothesis.strategies.just(schedule) for a single one": (
        lambda: strategies.policies(schedules=s.linear(1))
    ),
    "max_attempts must be an integer >= 1, got 0": (
        lambda: strategies.policies(max_attempts=0)
    ),
    f"errors must be {ERRORS}, got {OSError}; {NO_OTHER}": (
        lambda: strategies.failure_scripts(errors=OSError)
    ),
    f"errors must be {ERRORS}, got []; {NO_OTHER}": (
        lambda: strategies.failure_scripts(errors=[])
    ),
    f"errors must be {ERRORS}, got (KeyboardInterrupt(),); {NO_OTHER}": (
        lambda: strategies.failure_scripts(errors=(KeyboardInterrupt(),))
    ),
    f"value must be anything but an exception, got {OSError}; {RAISED}": (
        lambda: strategies.failure_scripts(value=OSError)
    ),
    f"value must be anything but an exception, got SystemExit(); {RAISED}": (
        lambda: strategies.failure_scripts(value=SystemExit())
    ),
    "max_failures must be an integer >= 1, got 0": (
        lambda: strategies.failure_scripts(max_failures=0)
    ),
    "succeeds must be a bool, got 'never'; None draws scripts of both kinds": (
        lambda: strategies.failure_scripts(succeeds="never")
    ),
    f"fn must be {CALLS}, got 7; {NAME}": (lambda: Recording().of(7)),
    "process_wide must be a bool, got 'no'": lambda: virtual_time(process_wide="no"),
    "process_wide must be a bool, got 0": lambda: record(process_wide=0),
    "process_wide must be a bool, got 1": lambda: limit_retries(process_wide=1),
    "process_wide must be a bool, got None": lambda: disable_retries(process_wide=None),
    "no_delay must be a bool, got 'yes'": lambda: limit_retries(no_delay="yes"),
    "allow_real_sleep must be a bool, got 'no'": lambda: virtual_time(
        allow_real_sleep="no"
    ),
    "name must be a str, got 3": lambda: ScriptedFunction([1], name=3),
    "outcomes must be a list, got {1}; write ScriptedFunction([...]), errors and "
    "values in their order": lambda: ScriptedFunction({1}),
    f"fn must be {CALLS}, got ''; {NAME}": (lambda: Recording().assert_attempts("", 1)),
}

SETTING_ERRORS |= {
    "policy must be a Policy, got 5; write Policy(schedule=...)": lambda: preview(5),
    "attempt must be a finite number >= 0, got -1": (
        lambda: preview(Policy(), attempt=-1)
    ),
    "retries must be an integer >= 1, got 0": (lambda: preview(Policy(), retries=0)),
    "retries must be an integer >= 1 and <= 10000, got 10001": (
        lambda: preview(Policy(), retries=10_001)
    ),
    "retry must be at most 30000 with .within(), which adds up all earlier delays, got "
    "1000000; limit the time with max_elapsed": (
        lambda: s.constant("1us").within("0.9s").bounds(10**6)
    ),
    "multiplier must be 1, or large enough for at most 1000 different intervals, got "
    "1.0002": lambda: s.google_interval(10, multiplier=1.0002, max_interval="1d"),
    "samples must be an integer >= 0, got -1": (lambda: preview(Policy(), samples=-1)),
    'policies must be at least one policy, got {}; write {"name": policy}': lambda: (
        page({})
    ),
    f"policies must be a dict of policies by name, got {[Policy()]!r}; "
    'write {"name": policy}': lambda: page([Policy()]),
    'the name of a policy must be a str, got 7; write {"name": policy}': lambda: page(
        {7: Policy()}
    ),
    "policies['mine'] must be a Policy, got [1]": lambda: page({"mine": [1]}),
    "attempt must be a finite number >= 0, got -2": (
        lambda: page({"mine": Policy()}, attempt=-2)
    ),
    "retries must be an integer >= 1, got -1": (
        lambda: page({"mine": Policy()}, retries=-1)
    ),
    "retries must be an integer >= 1 and <= 10000, got 10002": (
        lambda: page({"mine": Policy()}, retries=10_002)
    ),
    "title must be a str, got None": lambda: page({"mine": Policy()}, title=None),
    "cumulative must be a bool, got 'yes'": (
        lambda: page({"mine": Policy()}, cumulative="yes")
    ),
    "log must be a bool, got 10": lambda: page({"mine": Policy()}, log=10),
}

SETTING_ERRORS |= {
    f"rules must be one of {', '.join(map(repr, RULES))}, got 'jitter'": (
        lambda: check(Policy(), rules=["jitter"])
    ),
    "attempts must be an integer >= 1, got 0": lambda: check(Policy(), attempts=0),
    "processes must be an integer >= 1, got -1": lambda: check(Policy(), processes=-1),
    'load must be a share of the capacity above 0 and below 1, such as "70%", got 70; '
    "from 100 % on, the queue grows without an outage": (
        lambda: check(Policy(), load=70)
    ),
    "lifetime must be a finite number >= 0, got -1": (
        lambda: check(Policy(), lifetime=-1)
    ),
    "target must be a str, got 5": lambda: discover(5),
    "target must be a file, a folder or a module, got 'no/such.py'; there is none": (
        lambda: discover("no/such.py")
    ),
    "target must be a file, a folder or a module, got 'retrykit.such'; there is none": (
        lambda: discover("retrykit.such")
    ),
}

OF_DATA = "one of retrykit.hints in a policy that is written as data"
TEXTS = "retry_after, milliseconds:HEADER, grpc_pushback, attribute:PATH, reset_at"
TEXTS += ", rate_limit"
OUTCOME = "the error or result"
SETTING_ERRORS |= {
    f"hint must be a function of {OUTCOME}, got 5; write one, or use one of "
    "retrykit.hints": lambda: check_hint("hint", 5),
    f"hint must be a function of {OUTCOME}, got {timedelta}; write one, or use one "
    "of retrykit.hints": lambda: check_hint("hint", timedelta),
    f"hint must be a function that takes {OUTCOME}, got {plain!r}": (
        lambda: check_hint("hint", plain)
    ),
    f"hint must be a sync function, even under aretry, got {fetch!r}; it reads "
    "only what it is given": lambda: check_hint("hint", fetch),
    f"hint must be a hint, not a function that builds one, got {grpc_pushback!r}; "
    "call it: grpc_pushback(...)": lambda: check_hint("hint", grpc_pushback),
    "header must be the name of a header, got 'Retry After'": (
        lambda: milliseconds("Retry After")
    ),
    "header must be the name of a header, got b'x'": lambda: milliseconds(b"x"),
    "header must be the name of a header with reset in it, got 'Retry-After'": (
        lambda: reset_at("Retry-After")
    ),
    "path must be the name of an attribute, or several with dots between them, got "
    "'a..b'": lambda: attribute("a..b"),
    "path must be the name of an attribute, or several with dots between them, got "
    "None": lambda: attribute(None),
    "unit must be one of 's', 'ms', got 'min'": lambda: attribute("wait", "min"),
    "hints must be at least one hint, got ()": first_of,
    f"hints must be a function of {OUTCOME}, got 'retry_after'; write one, or use "
    "one of retrykit.hints": lambda: first_of("retry_after"),
    f"hint must be {OF_DATA}, got {unannotated!r}; leave it out, and add it with "
    ".replace(hint=...)": lambda: hint_to_text(unannotated),
    f"hint must be {A_HINT}, got 5; write {TEXTS}": lambda: parse_hint(5),
    f"hint must be {A_HINT}, got ''; write {TEXTS}": lambda: parse_hint(""),
    f"hint must be {A_HINT}, got 'retry-after'; did you mean retry_after?": (
        lambda: parse_hint("milliseconds:retry-after-ms, retry-after")
    ),
    f"hint must be {A_HINT}, got 'retry_after:5'; write retry_after": (
        lambda: parse_hint("retry_after:5")
    ),
    f"hint must be {A_HINT}, got 'attribute'; write attribute:PATH": (
        lambda: parse_hint("attribute")
    ),
    "unit must be one of 's', 'ms', got 'h'": lambda: parse_hint("attribute:wait:h"),
}

BUDGET = "name the class, or write lambda: TokenBucket(...)"
TOKENS = "an integer >= 0"
WHOLE = "for fractions of a token multiply all counts by the same number"
PAIRS = "pairs of a condition and what it costs"
COMMAS = "write ((TimeoutError, 10),), with both commas"
SCOPE = "'process', or a string such as 'host:api.example' or 'key:orders'"
MADE_HERE = "a function that builds a budget of retrykit.budgets"
BUCKET_KEYS = "kind, capacity, cost, costs, reward, refunds, scope"
BUDGETS = "token_bucket, throttle, ratio_budget, fleet_budget"


async def async_predicate(error):
    """Do nothing, asynchronously."""


def share_twice():
    shared("key:errors", lambda: TokenBucket(capacity=7))
    shared("key:errors", Throttle)


SETTING_ERRORS |= {
    f"capacity must be {TOKENS}, got -1; {WHOLE}": lambda: TokenBucket(capacity=-1),
    f"capacity must be {TOKENS} and <= {2**53 - 1}, got {2**53}; {WHOLE}": (
        lambda: TokenBucket(capacity=2**53)
    ),
    f"cost must be {TOKENS}, got 0.5; {WHOLE}": lambda: TokenBucket(cost=0.5),
    f"reward must be {TOKENS}, got '1'; {WHOLE}": lambda: TokenBucket(reward="1"),
    f"costs must be {PAIRS}, got 10; {COMMAS}": lambda: TokenBucket(costs=10),
    f"costs must be {PAIRS}, got (10,); {COMMAS}": lambda: TokenBucket(costs=(10,)),
    f"costs[0] must be {SELECTS}, got 'TimeoutError'; name the type itself, without "
    "quotes": lambda: TokenBucket(costs=[("TimeoutError", 10)]),
    f"costs[0] must be a sync predicate, got {async_predicate!r}": (
        lambda: TokenBucket(costs=[(async_predicate, 10)])
    ),
    f"costs[1] must be {TOKENS}, got -2": (
        lambda: TokenBucket(costs=[(OSError, 2), (ValueError, -2)])
    ),
    "costs must be a dict of costs by exception type, got [['OSError', 1]]; write "
    '{"TimeoutError": 10}': (
        lambda: budget_from_dict({"kind": "token_bucket", "costs": [["OSError", 1]]})
    ),
    f"costs must be {NAMED}, got 'Busy'; write module:Name for a type that is "
    "not built in": (
        lambda: budget_from_dict({"kind": "token_bucket", "costs": {"Busy": 1}})
    ),
    "costs must be importable exception types in a policy that is written as data, "
    f"got {callable!r}; leave it out, and add it with .replace(costs=...)": (
        lambda: TokenBucket(costs=[(callable, 1)]).to_dict()
    ),
    "max_tokens must be an integer >= 1, got 0": lambda: Throttle(0),
    "token_ratio must be a finite number >= 0.001, got 0.0009": (
        lambda: Throttle(10, 0.0009)
    ),
    "ratio must be a finite number >= 0 and <= 1000, got -0.1; 0.2 is 20 %": (
        lambda: RatioBudget(-0.1)
    ),
    "reserve must be a finite number >= 0 and <= 1e+06, got nan": (
        lambda: RatioBudget(reserve=math.nan)
    ),
    f"window must be a finite number >= 0, got None; {SECONDS}": (
        lambda: RatioBudget(window=None)
    ),
    "window must be a duration from 1s to 1d, got '999ms'": (
        lambda: RatioBudget(window="999ms")
    ),
    "window must be a duration from 1s to 1d, got '25h'": (
        lambda: RatioBudget(window="25h")
    ),
    "clock must be a function that returns seconds, got 5; write time.monotonic": (
        lambda: FleetBudget(clock=5)
    ),
    "state must be a RetryState, got 5": lambda: Policy().decide(5, None),
    "failure must be a Failure, got 5": lambda: Policy().decide(
        RetryState("fetch", seed=7, epoch=0), 5
    ),
    "decision must be an Again, got 5": lambda: Policy().advance(
        RetryState("fetch", seed=7, epoch=0),
        Failure(1, OSError(), None, 0, 1, None),
        5,
    ),
    "failure.attempt must be 1, the number of the attempt that the state is in, got "
    "2": lambda: Policy().advance(
        RetryState("fetch", seed=7, epoch=0),
        Failure(2, OSError(), None, 0, 1, None),
        Again(1),
    ),
    "failure.started must be a finite number >= 0, got -1": lambda: Policy().advance(
        RetryState("fetch", seed=7, epoch=0),
        Failure(1, OSError(), None, -1, 1, None),
        Again(1),
    ),
    "failure.duration must be a finite number >= 0, got -1": lambda: Policy().advance(
        RetryState("fetch", seed=7, epoch=0),
        Failure(1, OSError(), None, 0, -1, None),
        Again(1),
    ),
    "decision.delay must be a finite number >= 0, got -1": lambda: Policy().advance(
        RetryState("fetch", seed=7, epoch=0),
        Failure(1, OSError(), None, 0, 1, None),
        Again(-1),
    ),
    "refunds must be True or False, got 1": lambda: TokenBucket(refunds=1),
    "ratio must be a finite number >= 0 and <= 1000, got -0.1; 0.2 is one for five "
    "successes": lambda: FleetBudget(-0.1),
    "capacity must be an integer >= 0, got 0.5": lambda: FleetBudget(capacity=0.5),
    f"recent must be a finite number >= 0, got None; {SECONDS}": (
        lambda: FleetBudget(recent=None)
    ),
    f"timeouts must be {SELECTS}, got 'TimeoutError'; name the type itself, without "
    "quotes": lambda: FleetBudget(timeouts="TimeoutError"),
    f"timeouts must be a sync predicate, got {async_predicate!r}": (
        lambda: FleetBudget(timeouts=async_predicate)
    ),
    f"timeouts must be {NAMED}, got 'Busy'; write module:Name for a type that is "
    "not built in": (
        lambda: budget_from_dict({"kind": "fleet_budget", "timeouts": ["Busy"]})
    ),
    f"timeouts must be {NAMED}, got 5; write module:Name for a type that is not "
    "built in": lambda: budget_from_dict({"kind": "fleet_budget", "timeouts": 5}),
    "timeouts must be importable exception types in a policy that is written as data, "
    f"got {callable!r}; leave it out, and add it with .replace(timeouts=...)": (
        lambda: FleetBudget(timeouts=callable).to_dict()
    ),
    "at_most must be an integer >= 1, got 0": lambda: Registry(Throttle, at_most=0),
    f"make must be a function that builds a budget, got Throttle(); {BUDGET}": (
        lambda: Registry(Throttle())
    ),
    "make() must be a new Budget, got {}; return one": (
        lambda: Registry(dict)["api.example"]
    ),
    f"make must be {MADE_HERE}, got Throttle(); {BUDGET}": (
        lambda: shared("process", Throttle())
    ),
    f"make must be {MADE_HERE}, got []; {BUDGET}": lambda: shared("process", list),
    f"scope must be {SCOPE}, got 'api.example'": lambda: shared(
        "api.example", Throttle
    ),
    f"scope must be {SCOPE}, got 'host: '": lambda: shared("host: ", Throttle),
    f"scope must be {SCOPE}, got None": lambda: shared(None, Throttle),
    "scope must be encodable as UTF-8, got 'host:\\udcff'": (
        lambda: shared("host:\udcff", Throttle)
    ),
    "make must be a function that builds TokenBucket(capacity=7), as before in this "
    "scope, got Throttle(); give another budget another scope": share_twice,
    f"budget must be a dict whose kind is one of {BUDGETS}, got 'throttle'": (
        lambda: budget_from_dict("throttle")
    ),
    f"budget must be a dict whose kind is one of {BUDGETS}, got "
    "{'kind': 'TokenBucket'}; did you mean token_bucket?": (
        lambda: budget_from_dict({"kind": "TokenBucket"})
    ),
    f"budget must be a dict with the keys {BUCKET_KEYS}, got "
    "{'kind': 'token_bucket', 'capasity': 5}; did you mean capacity?": (
        lambda: budget_from_dict({"kind": "token_bucket", "capasity": 5})
    ),
}


class AsyncBudget(Budget):
    """An async budget."""

    balance = 1.0

    async def withdraw(self, _error, /):
        return 0.0

    async def deposit(self, _cost, /): ...

    def __repr__(self):
        return "Remote()"


BROAD = Rule(OSError, [1])
NARROW = Rule((ConnectionError, TimeoutError), [1])
AS_DATA = "in a policy that is written as data"

SETTING_ERRORS |= {
    # rules
    "rules[0]: rule must be given errors in on, or a predicate of results in "
    "on_result, got Rule(schedule=sequence([1.0]))": (
        lambda: Policy.from_dict({"rules": [{"on": [], "schedule": [1]}]})
    ),
    "on_result must be a predicate of the result, got <class 'str'>; write a "
    "function": lambda: Rule(on_result=str, schedule=[1]),
    f"on must be {SELECTS}, got 5": lambda: Rule(on=5, schedule=[1]),
    "max_attempts must be an integer >= 1, got 2.5": (
        lambda: Rule(on=OSError, max_attempts=2.5)
    ),
    "rule must be given a schedule, max_attempts or hint, got Rule(on=OSError); errors "
    "without any belong in the policy's on": lambda: Rule(on=OSError),
    f"rules must be a list of rules, got {BROAD!r}; put brackets around it": (
        lambda: Policy(rules=BROAD)
    ),
    "rules must be a list of rules, got 5": lambda: Policy(rules=5),
    "rules[0] must be a Rule, got <class 'OSError'>; write Rule(on=..., ...)": (
        lambda: Policy(rules=[OSError])
    ),
    f"rules[1] must be placed where it can apply, got {NARROW!r}; an earlier "
    "rule matches all of its errors: put it first": (
        lambda: Policy(rules=[BROAD, NARROW])
    ),
    "give_up_on must be narrower than the on of each rule, or the rule never applies, "
    f"got <class 'OSError'>; it includes all errors of {NARROW!r}": (
        lambda: Policy(rules=[NARROW], give_up_on=OSError)
    ),
    # other settings beside the schedule
    f"hint must be a hint, not a function that builds one, got {retry_after!r}; "
    "call it: retry_after(...)": lambda: Policy(hint=retry_after),
    "hint_cap must be a finite number >= 0, got -1": (lambda: Policy(hint_cap=-1)),
    "on_long_hint must be one of 'honor', 'clip', 'ignore', 'give_up', got 60; for a "
    "bound use hint_cap": lambda: Policy(on_long_hint=60),
    "hint_jitter must be a finite number >= 0 and <= 1, got 10; 0.1 adds up to 10 % of "
    "a hint; 0 adds nothing": lambda: Policy(hint_jitter=10),
    "budget must be a budget, got <class 'retrykit.budgets._throttle.Throttle'>; "
    "create one: Throttle()": lambda: Policy(budget=Throttle),
    "budget must be a budget, got 500; use one of retrykit.budgets": (
        lambda: Policy(budget=500)
    ),
    "budget must be a sync budget where nothing can await it, got Remote(); "
    "async functions need aretry": lambda: retry(budget=AsyncBudget())(plain),
    "attempt_timeout must be a finite number >= 0, got -1": (
        lambda: Policy(attempt_timeout=-1)
    ),
    "attempt_timeout must be a duration > 0, got '0s'; None is unlimited": (
        lambda: Policy(attempt_timeout="0s")
    ),
    f"policy must be a Policy, got {presets.grpc!r}; write retry(presets.grpc())": (
        lambda: retry(presets.grpc)
    ),
    "attempt_timeout must be None for sync code, which cannot be cancelled, got 2.5; "
    "give the client timeout=current_state().remaining, or write "
    "attempt_timeout=AsArgument(2.5), which fills a parameter": (
        lambda: retry(attempt_timeout=2.5)(plain)
    ),
    "attempt_timeout must be a duration where there is no function with a timeout "
    "parameter, got AsArgument(5.0, 'timeout'); use current_state().remaining in the "
    "block": (lambda: retrying(attempt_timeout=AsArgument(5))),
    "nested must be one of 'respect', 'retry', 'raise', got True": (
        lambda: Policy(nested=True)
    ),
    # and as data
    "rules must be a list of dicts, got {'on': 'OSError'}": (
        lambda: Policy.from_dict({"rules": {"on": "OSError"}})
    ),
    "rules[0] must be a dict of on, and of schedule, max_attempts or hint, got "
    "{'on': 'OSError'}": lambda: Policy.from_dict({"rules": [{"on": "OSError"}]}),
    f"rules[0]: on must be {NAMED}, got 5; write module:Name for a type that is "
    "not built in": (
        lambda: Policy.from_dict({"rules": [{"on": 5, "max_attempts": 2}]})
    ),
    f"budget must be one of retrykit.budgets {AS_DATA}, got Remote(); leave it out, "
    "and add it with .replace(budget=...)": lambda: Policy(
        budget=AsyncBudget()
    ).to_dict(),
    "attempt_timeout must be a duration, or a dict of argument and seconds, got "
    "{'seconds': 5}": lambda: Policy.from_dict({"attempt_timeout": {"seconds": 5}}),
    "attempt_timeout: name must be the name of a parameter, got 'time out'": (
        lambda: Policy.from_dict(
            {"attempt_timeout": {"argument": "time out", "seconds": 5}}
        )
    ),
}


DECORATED = FunctionType(plain.__code__, {"__name__": "tenacity"})
DECORATED.__dict__["__wrapped__"] = plain
TASK = type("TaskWrapper", (), {"__module__": "huey.api", "__call__": print})
STOP, LOOP_STOP, TRIO_STOP = threading.Event(), asyncio.Event(), trio.Event()
NOWHERE = (
    "left out where no function can return it: in a block, a client, a job or a stream"
)
NOT_IN_JOBS = "left out in a job, whose delays pass in its engine"


def refuse():
    raise OSError("refused")


async def fail():
    refuse()


SETTING_ERRORS |= {
    # policies of the moment
    "policy must be a Policy, got <class 'OSError'>; write retry(on=OSError)": (
        lambda: retry(policy=OSError)
    ),
    # both limits
    "limits must be one of 'any', 'all', got [CircuitBreaker()]; write admission=[...] "
    "for those of retrykit.limits": lambda: Policy(limits=[CircuitBreaker()]),
    "budget must be a budget, got CircuitBreaker(); write admission=[...] for limits "
    "such as a CircuitBreaker": lambda: Policy(budget=CircuitBreaker()),
    "limits must be one of 'any', 'all', got 'both'": lambda: Policy(limits="both"),
    "limits must be 'any' unless both max_attempts and max_elapsed are set, got "
    "'all'": lambda: Policy(limits="all", max_attempts=5),
    "exception_groups must be one of 'all', 'any', 'whole', got 'each'": (
        lambda: Policy(exception_groups="each")
    ),
    # a value in place of an error
    "fallback must be a value, or a function of the state, got <class 'list'>; write "
    "lambda state: list() for a new object each": lambda: Policy(fallback=list),
    "fallback must be a value, or a function that takes the state, got "
    f"{plain!r}; write lambda state: ...": lambda: Policy(fallback=plain),
    f"fallback must be {PLAIN}, got {fetch!r}; async functions need aretry": (
        lambda: retry(fallback=fetch)(plain)
    ),
    f"fallback must be {NOWHERE}, got 0; handle the error there, or write "
    "Policy.run": lambda: retrying(fallback=0),
    f"stop_event must be {NOT_IN_JOBS}, got {STOP!r}": (
        lambda: Job(plain, Policy(stop_event=STOP))
    ),
    f"sleep must be {NOT_IN_JOBS}, got {callable!r}": (
        lambda: Job(plain, Policy(sleep=callable))
    ),
    # the wait
    "stop_event must be an event with is_set() and wait(), got 5; write "
    "threading.Event(), or asyncio.Event() under aretry": (
        lambda: Policy(stop_event=5)
    ),
    "sleep must be a function of the seconds, got 5; for delays write schedule=...": (
        lambda: Policy(sleep=5)
    ),
    f"sleep must be a function that takes the seconds, got {plain!r}": (
        lambda: Policy(sleep=plain)
    ),
    f"sleep must be {PLAIN}, got {fetch!r}; async functions need aretry": (
        lambda: retry(sleep=fetch)(plain)
    ),
    f"stop_event must be a threading.Event under retry, got {LOOP_STOP!r}; "
    "asyncio.Event needs aretry": lambda: retry(stop_event=LOOP_STOP)(plain),
    "stop_event must be an asyncio.Event or a trio.Event under aretry, got "
    f"{STOP!r}; waiting for a thread's event would block the event loop": (
        lambda: aretry(stop_event=STOP)(fail)
    ),
    f"sleep must be an async function under aretry, got {time.sleep!r}; it would block "
    "the event loop: leave it out, or write asyncio.sleep": (
        lambda: aretry(sleep=time.sleep)(fail)
    ),
    f"fn must be a function, not a Huey task, which would run without retries, got "
    f"{TASK!r}; put retry below the other decorator": lambda: retry(TASK()),
    "fn must be a function that tenacity does not retry, too, so that attempts "
    f"multiply, got {DECORATED!r}; leave out the decorator of tenacity, or write "
    'nested="retry" here': lambda: with_policy(DECORATED, max_attempts=2),
}


def answer(_):
    return Answer()


def refuse_status(*args):
    raise wrong_status(*args)


CALL_ERRORS = {
    "policy must be a Policy from each call of plain, got 1; return Policy(...)": (
        retry(policy=plain)(plain)
    ),
    f"stop_event must be an event of asyncio, whose event loop is running, got "
    f"{TRIO_STOP!r}": (
        lambda: asyncio.run(aretry(stop_event=TRIO_STOP, schedule=[1])(fail)())
    ),
    "fallback must be a sync function under retry, got Answer(); use aretry for async "
    "functions": retry(max_attempts=1, fallback=answer)(refuse),
    "sleep must be a sync function under retry, got Answer(); use aretry for async "
    "functions": retry(schedule=[1], sleep=answer)(refuse),
}

IN_AIRFLOW = Policy(max_elapsed=None)
RULED = Policy(rules=[NARROW])

SETTING_ERRORS |= {
    "rules must be empty on an engine that keeps no errors to count, got "
    f"{RULED.rules!r}; list the retried errors in on, and their delays in schedule": (
        lambda: check_replayable(RULED)
    ),
    f"policy must be a Policy, got {Policy}; write AirflowPolicy(Policy(...))": (
        lambda: check_policy(Policy)
    ),
    "max_elapsed must be None in Airflow, got 60.0; Airflow does not say when the "
    "first try began: limit max_attempts": lambda: check_policy(Policy()),
    "attempt_timeout must be None in Airflow, got 5.0; give the task an "
    "execution_timeout": lambda: check_policy(IN_AIRFLOW.replace(attempt_timeout=5)),
    "budget must be None in Airflow, got TokenBucket(); each try runs in a separate "
    "process: give the task a pool": (
        lambda: check_policy(IN_AIRFLOW.replace(budget=TokenBucket()))
    ),
    "max_attempts must be a number in Airflow, since its tasks limit their retries, "
    "got None; set it to the number of delays in the schedule, plus 1": (
        lambda: check_policy(IN_AIRFLOW.replace(max_attempts=None))
    ),
}

# Errors that only the first call can show.
CALL_ERRORS |= {
    "client must be one that can be copied, got <class 'object'>; make it with "
    "retry=None": lambda: OWN_RETRIES["google-api-core"].off(object()),
    "job_id must be the id of an unfinished job, got 'verify-7'; it is dead": (
        lambda: refuse_status("verify-7", "unfinished", "dead")
    ),
    "its answer must be a delay, not an awaitable, even under aretry, got "
    "Answer()": lambda: parse_answer(Answer()),
    "its answer must be a finite number >= 0, got -1": (lambda: parse_answer(-1)),
    "fetch must be a function that returns its result directly, under retry, got "
    "Answer(); decorate it with aretry": lambda: Policy(name="fetch").call(Answer),
    "fn must be a function that returns an awaitable, under aretry, got "
    f"{unannotated!r}; decorate it with retry": (
        lambda: asyncio.run(aretry(unannotated)())
    ),
    "on_result must be a sync function under retry, got Answer(); "
    "use aretry for async functions": (
        lambda: Policy(on_result=lambda _: Answer()).call(unannotated)
    ),
    "schedule must be a schedule of finite numbers >= 0, got -1.0; see its delay "
    "method": lambda: Policy(schedule=NegativeSchedule()).decide(STATE, FAILURE),
    "schedule[0] must be a finite number >= 0, got -2": (
        lambda: Policy(schedule=functools.partial(doubling, -2)).decide(STATE, FAILURE)
    ),
    "attempt must be entered exactly once, in its own iteration, got <Attempt 1>; "
    "write with attempt: in the loop": enter_nothing,
}

CALL_ERRORS |= LIMIT_CALL_ERRORS | STREAM_CALL_ERRORS

# Only jobs on engines take a datetime.
NAIVE = datetime(2026, 11, 23)  # noqa: DTZ001  naive, to be rejected
SETTING_ERRORS |= {
    "when must be a datetime, got '1h'": lambda: check_aware("when", "1h"),
    "when must be an aware datetime, got datetime.datetime(2026, 11, 23, 0, 0); write "
    "datetime.now(UTC)": lambda: check_aware("when", NAIVE),
}

MORE = [PRESET_ERRORS, JOB_ERRORS, LIMIT_ERRORS, STREAM_ERRORS, SIMULATION_ERRORS]
for more in [*MORE, AUDIT_ERRORS]:
    # Or a row would overwrite another.
    assert not SETTING_ERRORS.keys() & more.keys()
    SETTING_ERRORS |= more


CODES = get_args(ErrorCode)


@pytest.mark.parametrize(
    ("message", "raise_error"),
    (SETTING_ERRORS | CALL_ERRORS).items(),
    ids=[
        message.partition(", got")[0][:60] for message in SETTING_ERRORS | CALL_ERRORS
    ],
)
def test_config_errors_name_the_argument_the_rule_and_the_value(message, raise_error):
    """`{name} must be {rule}, got {value!r}; {suggestion}`."""
    with pytest.raises(ConfigError) as caught:
        raise_error()
    error = caught.value
    assert error.message == message
    assert str(error) == f"{message}  [{error.code}]"
    assert error.code in CODES


@pytest.mark.thorough
def test_every_check_of_the_package_is_in_the_table():
    """Except those of integrations: see ``test_errors_of_integrations.py``."""
    package = Path(retrykit.__file__).parent
    files = [path for path in package.rglob("*.py") if not required.needs(path)]
    # Those of the formats of other systems are told with their lines, by their tests;
    # of values in source code, none is an error.
    others = {"integrations", "_foreign", "_libraries"}
    outside = [path for path in files if others.isdisjoint(path.parts)]
    assert untested_checks(SETTING_ERRORS | CALL_ERRORS, outside) == []


LONG_NAME = "\x1b[31m" + "x" * 10**5
LONG = {
    "a setting": lambda: Policy.from_dict({LONG_NAME: 1}),
    "a parameter": lambda: parse_preset(f"zizq:{LONG_NAME}={LONG_NAME}"),
    "a module": lambda: Policy.from_dict({"on": f"{LONG_NAME}:Error"}),
    "a policy": lambda: in_a_file("a.json", json.dumps(NESTED).encode(), LONG_NAME),
    "many policies": lambda: in_a_file("a.json", json.dumps(MANY).encode(), "?"),
    "odd policies": lambda: in_a_file(
        "a.json", json.dumps(UNPRINTABLE_NAMES).encode(), "a b"
    ),
}
NESTED = {"policies": {LONG_NAME: {"on": 5}}}
UNPRINTABLE_NAMES = {"policies": {"a\nb": {}, "\x1b[31mred": {}, "\u202ea": {}}}
MANY = {"policies": {f"policy{place}": {} for place in range(1000)}}


@pytest.mark.parametrize("raise_error", LONG.values(), ids=LONG)
def test_an_error_about_a_long_name_is_short_and_printable(raise_error):
    with pytest.raises(ConfigError) as caught:
        raise_error()
    assert len(str(caught.value)) < 2100
    assert str(caught.value).isprintable()


def test_config_error_is_a_value_error():
    with pytest.raises(ValueError, match="max_attempts"):
        Policy(max_attempts=0)
    assert issubclass(ConfigError, RetrykitError)


def own_frames(error):
    """Return the names of the functions of the package in a traceback, in order."""
    package = Path(retrykit.__file__).parent
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    codes = [frame.f_code for frame in frames]
    return [code.co_name for code in codes if package in Path(code.co_filename).parents]


def has_own_cause(error):
    """Return whether a traceback shows another error that the package met itself."""
    hidden = error.__suppress_context__
    shown = error.__cause__ or (None if hidden else error.__context__)
    return isinstance(shown, LookupError) and bool(own_frames(shown))


@pytest.mark.parametrize(
    ("message", "raise_error"),
    (SETTING_ERRORS | CALL_ERRORS).items(),
    ids=[
        message.partition(", got")[0][:60] for message in SETTING_ERRORS | CALL_ERRORS
    ],
)
def test_the_traceback_of_a_config_error_ends_at_the_line_of_the_caller(
    message, raise_error
):
    with pytest.raises(ConfigError) as caught:
        raise_error()
    own = own_frames(caught.value)
    assert not has_own_cause(caught.value)
    assert len(own) <= 1 or own[0] in {*PRIVATE, *IN_CALLS}


PRIVATE = {"as_json", "check_aware", "check_policy", "parse_answer"}
PRIVATE |= {"with_timeout_argument"}
IN_CALLS = {"__iter__", "__next__", "call", "call_with_retries", "continue_with"}
"""The first functions of the package in the tracebacks of other errors."""


def test_the_traceback_of_a_decorator_has_the_line_that_is_wrong(tmp_path):
    file = tmp_path / "shop.py"
    file.write_text(
        "from retrykit import retry\n@retry(max_elapsed='60')\ndef f(): ..."
    )
    shown = run([sys.executable, file], capture_output=True, text=True, check=False)  # noqa: S603
    first, *frames, last = shown.stderr.splitlines()
    assert first == "Traceback (most recent call last):"
    assert frames[0].startswith(f'  File "{file}", line 2')
    assert sum(line.startswith("  File") for line in frames) == 1
    assert last.startswith("retrykit.errors.ConfigError: max_elapsed must be")


def test_frames_of_the_user_stay_in_the_traceback():
    def delays():
        yield s.exponential(-1)

    with pytest.raises(ConfigError, match="first must be") as caught:
        list(Policy(schedule=delays).schedule.draw())
    names = [f.f_code.co_name for f, _ in traceback.walk_tb(caught.value.__traceback__)]
    assert names[-1] == "delays"
