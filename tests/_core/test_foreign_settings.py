"""Parameters of other retry libraries: the error names what to write instead."""

import inspect
import re
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import pytest

import retrykit
from retrykit import ConfigError, Policy, limits, schedules, testing
from retrykit._core.foreign_settings import ADVICE
from retrykit._core.settings import SETTINGS, Raises
from retrykit.events import EventKind
from retrykit.integrations.logging import observer
from retrykit.schedules._kinds import CONSTRUCTORS

ATTEMPTS = "write max_attempts, which includes the first attempt"
ELAPSED = "write max_elapsed"
LIMITS = "write max_attempts, max_elapsed or both"
EACH_OR_ALL = "write max_elapsed for all attempts, attempt_timeout for each"
TIMEOUT = "write attempt_timeout"
EVENT = "write stop_event"

SCHEDULE = "write schedule, a list of delays or one of retrykit.schedules"
GENERATOR = "write schedule, a generator function of delays"
EXPONENTIAL = "write schedule=exponential(first, factor=...)"
LINEAR = "write schedule=linear(step), or linear(step, first=...)"
UNIFORM = "write schedule=uniform(min, max)"
DECAY = "write schedule=decay(first, rate=...)"
CAP = "write schedule, with .cap(...) on it"
CAP_OR_ELAPSED = f"{CAP}, or max_elapsed for all attempts"
CAP_OR_HINT = f'{CAP}; for Retry-After write hint_cap and on_long_hint="clip"'
LEAST = "write schedule, with .at_least(...) on it"
JITTER = "write schedule, with .jitter(...), .full_jitter() or + uniform(0, ...)"

ON = "write on"
PREDICATE = "write on, which may be a predicate of the error"
ON_OR_RESULT = "write on for errors, on_result for results"
GIVE_UP = "write give_up_on"
RESULT = "write on_result, a predicate that returns True for results to retry"
RULES = "write rules, a list of Rule(on=..., schedule=..., max_attempts=...)"

HINT = "write hint, one of retrykit.hints"
HINT_CAP = 'write hint_cap and on_long_hint="clip"'
BUDGET = "write budget, one of retrykit.budgets"
BREAKER = "write admission=[CircuitBreaker(...)], from retrykit.limits"
RATE = "write admission=[RateLimit(...)], from retrykit.limits"
SEMAPHORE = "write admission=[Concurrency(...)], from retrykit.limits"
HEDGE = 'write hedge=Hedge("50ms", idempotent=True)'
OBSERVERS = "write observers, functions that are called with each event"
STARTED = 'write observers={"attempt_started": function}'
FAILED = 'write observers={"attempt_failed": function}'
SCHEDULED = 'write observers={"retry_scheduled": function}'
SUCCEEDED = 'write observers={"succeeded": function}'
GAVE_UP = 'write observers={"gave_up": function}'
LOGS = "write observers=[observer(levels=...)], from retrykit.integrations.logging"
STATE = "read it from state_of(error)"
FALLBACK = "write fallback, a value or a function of the state"
RETRY_ERROR = 'write raises="retry_error"'

STATUSES = "write on_result, or use policy() of the client in retrykit.integrations"
METHODS = "write methods as an argument of RetryTransport, RetryAdapter or the like"
REDIRECTS = "set redirects on the HTTP client"
RAISE = "call raise_for_status() of the response"
MOUNT = "write session.mount(prefix, RetryAdapter())"
POLICY = "write policy, a Policy or a function that returns one"
ONCE = "write max_attempts=1, or retrykit.testing.disable_retries() in tests"
CALL = "write Policy(...).call(fn, *args, **kwargs)"

# For each library, its parameters that are no settings here, by the advice.
LIBRARIES = {
    "tenacity": {
        LIMITS: "stop",
        ATTEMPTS: "max_attempt_number",
        EVENT: "event",
        SCHEDULE: "wait",
        EXPONENTIAL: "multiplier exp_base initial",
        LINEAR: "start increment",
        CAP: "max",
        CAP_OR_ELAPSED: "max_delay",
        LEAST: "min",
        JITTER: "jitter",
        ON: "exception_types",
        PREDICATE: "message match retry_if_exception retry_if_exception_type",
        ON_OR_RESULT: "retry predicate",
        GIVE_UP: "retry_if_not_exception_type",
        RESULT: "retry_if_result",
        STARTED: "before",
        FAILED: "after",
        SCHEDULED: "before_sleep",
        LOGS: "logger log_level exc_info sec_format",
        "write raises, which is the last error by default": "reraise",
        RETRY_ERROR: "retry_error_cls",
        FALLBACK: "retry_error_callback",
        ONCE: "enabled",
    },
    "backoff": {
        ATTEMPTS: "max_tries",
        ELAPSED: "max_time",
        SCHEDULE: "wait_gen interval",
        EXPONENTIAL: "base factor",
        DECAY: "initial_value decay_factor",
        LEAST: "min_value",
        CAP: "max_value",
        JITTER: "jitter",
        ON: "exception",
        ON_OR_RESULT: "predicate",
        GIVE_UP: "giveup",
        HINT: "value",
        SUCCEEDED: "on_success",
        SCHEDULED: "on_backoff",
        GAVE_UP: "on_giveup",
        LOGS: "logger backoff_log_level giveup_log_level",
        FALLBACK: "raise_on_giveup",
    },
    "stamina": {
        ATTEMPTS: "attempts",
        EACH_OR_ALL: "timeout",
        EXPONENTIAL: "wait_initial wait_exp_base",
        CAP: "wait_max cap",
        JITTER: "wait_jitter",
        ONCE: "active testing",
    },
    "retrying": {
        LIMITS: "stop stop_func",
        ATTEMPTS: "stop_max_attempt_number",
        SCHEDULE: "wait",
        GENERATOR: "wait_func",
        PREDICATE: "retry_on_exception",
        RESULT: "retry_on_result",
        STARTED: "before_attempts",
        FAILED: "after_attempts",
        LOGS: "logger",
        RETRY_ERROR: "wrap_exception",
    },
    "urllib3": {
        ATTEMPTS: "total",
        RULES: "connect read other",
        "write max_attempts, which also counts rejected responses": "status",
        REDIRECTS: "redirect raise_on_redirect remove_headers_on_redirect",
        RAISE: "raise_on_status",
        METHODS: "allowed_methods method_whitelist",
        STATUSES: "status_forcelist",
        EXPONENTIAL: "backoff_factor",
        CAP: "backoff_max",
        JITTER: "backoff_jitter",
        STATE: "history",
        HINT: "respect_retry_after_header",
        HINT_CAP: "retry_after_max",
    },
    "retry, retry2": {
        ATTEMPTS: "tries",
        SCHEDULE: "delay backoff",
        CAP_OR_ELAPSED: "max_delay",
        JITTER: "jitter",
        ON: "exceptions",
        LOGS: "logger log_traceback",
        "write observers for a report, give_up_on to stop": "on_exception",
        CALL: "f fargs fkwargs",
    },
    "retry-requests": {
        ATTEMPTS: "retries",
        EXPONENTIAL: "backoff_factor",
        STATUSES: "status_to_retry",
        MOUNT: "session prefixes",
    },
    "google-api-core": {
        ON_OR_RESULT: "predicate",
        EXPONENTIAL: "initial multiplier",
        CAP: "maximum",
        EACH_OR_ALL: "timeout",
        FAILED: "on_error",
    },
    "redress": {
        ATTEMPTS: "max_retries",
        ELAPSED: "deadline_s",
        TIMEOUT: "attempt_timeout_s",
        SCHEDULE: "strategy default_strategy",
        EXPONENTIAL: "base_s",
        CAP: "max_s",
        JITTER: "jitter_s",
        PREDICATE: "classifier",
        GIVE_UP: "abort_if",
        RESULT: "result_classifier",
        RULES: "strategies class_strategies max_unknown_attempts "
        "per_class_max_attempts",
        BUDGET: "window_s target_success min_multiplier max_multiplier",
        BREAKER: "circuit_breaker failure_threshold recovery_timeout_s trip_on "
        "class_thresholds",
        SCHEDULED: "before_sleep",
        STARTED: "on_attempt_start",
        FAILED: "on_attempt_end",
        OBSERVERS: "on_metric",
        LOGS: "on_log",
        "write sleep": "sleeper",
        "write name": "operation",
        CALL: "func",
        "use retrykit.testing.virtual_time() in tests": "clock",
    },
    "aiohttp-retry": {
        ATTEMPTS: "attempts",
        SCHEDULE: "timeouts",
        GENERATOR: "random_func",
        EXPONENTIAL: "start_timeout factor multiplier",
        UNIFORM: "min_timeout",
        CAP: "max_timeout",
        JITTER: "random_interval_size",
        ON: "exceptions",
        RESULT: "evaluate_response_callback",
        STATUSES: "statuses retry_all_server_errors",
        METHODS: "methods",
        RAISE: "raise_for_status",
        LOGS: "logger",
        POLICY: "retry_options",
        "write ClientSession(middlewares=[RetryMiddleware()])": "client_session",
    },
    "httpx-retries": {
        ATTEMPTS: "total",
        ELAPSED: "total_timeout",
        EXPONENTIAL: "backoff_factor",
        CAP_OR_HINT: "max_backoff_wait",
        JITTER: "backoff_jitter",
        ON: "retry_on_exceptions",
        ON_OR_RESULT: "retry",
        RESULT: "validate_response",
        STATUSES: "status_forcelist",
        METHODS: "allowed_methods",
        HINT: "respect_retry_after_header",
        STATE: "attempts_made elapsed_sleep",
    },
    "opnieuw": {
        ATTEMPTS: "max_calls_total",
        ELAPSED: "retry_window_after_first_call_in_seconds",
        ON: "retry_on_exceptions",
        ONCE: "namespace",
    },
    "Celery, Temporal": {
        ATTEMPTS: "max_retries maximum_attempts",
        SCHEDULE: "countdown default_retry_delay",
        EXPONENTIAL: "retry_backoff backoff_coefficient initial_interval",
        CAP: "retry_backoff_max maximum_interval",
        JITTER: "retry_jitter",
        ON: "autoretry_for",
        GIVE_UP: "dont_autoretry_for non_retryable_error_types",
        POLICY: "retry_policy retry_kwargs",
    },
    "guesses": {
        ATTEMPTS: "max_calls max_retry num_retries retry_count retry_limit times",
        ELAPSED: "max_duration max_elapsed_time time_limit",
        TIMEOUT: "per_try_timeout request_timeout try_timeout",
        EVENT: "cancel_event shutdown_event",
        SCHEDULE: "backoff_strategy delays intervals retry_delay sleep_time wait_time",
        EXPONENTIAL: "base_delay first_delay initial_delay initial_wait",
        CAP: "max_backoff max_interval max_wait",
        LEAST: "min_delay min_wait",
        ON: "catch error errors exc retry_exceptions retryable_exceptions",
        ON_OR_RESULT: "condition retry_if retry_on retry_when should_retry when",
        GIVE_UP: "abort_on exclude fatal give_up ignore not_on permanent",
        RESULT: "result",
        RULES: "overrides per_error",
        HINT: "retry_after",
        HINT_CAP: "max_retry_after",
        BUDGET: "retry_budget throttle token_bucket",
        RATE: "limiter max_rate rate rate_limit rate_limiter period",
        SEMAPHORE: "bulkhead concurrency max_concurrency max_concurrent semaphore",
        HEDGE: "hedge_delay hedging max_hedged_attempts",
        "write nested": "outer",
        OBSERVERS: "callback hook",
        FAILED: "on_failure",
        SCHEDULED: "on_retry",
        FALLBACK: "default default_value raise_on_failure suppress",
        STATUSES: "retry_on_status status_codes",
        "write sleep": "sleep_func",
        ONCE: "disabled",
    },
}
MILLISECONDS = ", in seconds instead of milliseconds"
LIBRARIES["retrying, in milliseconds"] = {
    f"{ELAPSED}{MILLISECONDS}": "stop_max_delay",
    f"{SCHEDULE}{MILLISECONDS}": "wait_fixed",
    f"{UNIFORM}{MILLISECONDS}": "wait_random_min wait_random_max",
    f"{LINEAR}{MILLISECONDS}": "wait_incrementing_start wait_incrementing_increment",
    f"{EXPONENTIAL}{MILLISECONDS}": "wait_exponential_multiplier",
    f"{CAP}{MILLISECONDS}": "wait_exponential_max wait_incrementing_max",
    f"{JITTER}{MILLISECONDS}": "wait_jitter_max",
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_each_parameter_of_a_library_has_its_advice(library):
    expected = {
        name: f"{name} is not a policy setting, got 3; {advice}"
        for advice, names in LIBRARIES[library].items()
        for name in names.split()
    }
    messages = {}
    for name in expected:
        with pytest.raises(ConfigError) as caught:
            Policy(**{name: 3})
        messages[name] = caught.value.message
    assert messages == expected


# Settings that are about to be added.


def test_a_name_has_one_advice_and_is_no_setting():
    names = " ".join(ADVICE.values()).split()
    assert sorted(names) == sorted({*names} - {*SETTINGS})


INTEGRATIONS = Path(retrykit.__file__).with_name("integrations")
OF_THE_CLIENTS = {"methods", "middlewares", "mount", "policy", "raise_for_status"}
OF_THE_CLIENTS |= {"ClientSession", "session"}
KNOWN = {
    *SETTINGS,
    *get_args(Raises),
    *OF_THE_CLIENTS,
    *retrykit.__all__,
    *testing.__all__,
    *limits.__all__,
    *inspect.signature(retrykit.Hedge).parameters,
    *CONSTRUCTORS,
    *dir(schedules.Schedule),
    *inspect.signature(schedules.exponential).parameters,
    *inspect.signature(schedules.decay).parameters,
    *inspect.signature(observer).parameters,
    *get_args(EventKind),
    *dir(Policy),
    *(
        name
        for path in INTEGRATIONS.glob("*.py")
        for name in re.findall(r"(?:class|def) (\w+)", path.read_text("utf-8"))
    ),
}
# What is called or assigned, has an underscore, or is a class of a client.
CODE = re.compile(r"\w+(?=[(=])|\b[a-z]+_\w+|Retry[A-Z]\w+")
MODULE = re.compile(r"retrykit(\.[a-z0-9]+)+\b(?![(_])")


@pytest.mark.parametrize("advice", ADVICE)
def test_an_advice_names_only_what_exists(advice):
    assert {*CODE.findall(advice)} <= KNOWN
    module = MODULE.search(advice)
    assert module is None or find_spec(module[0])
    written = re.match(r"write (\w+)", advice)
    assert written is None or written[1] in KNOWN
