"""Parameters of other retry libraries, and what to write in their place."""

import re

__all__ = ["ADVICE", "RETRY_NAMES", "advice_for"]

ADVICE = {
    # Limits
    "write max_attempts, which includes the first attempt": (
        "attempts max_attempt_number max_calls max_calls_total max_retries max_retry "
        "max_retry_attempts max_retry_count max_tries maximum_attempts num_attempts "
        "num_retries number_of_retries retries retry_attempts retry_count retry_limit "
        "retry_times stop_after_attempt stop_max_attempt_number times total "
        "total_attempts total_max_attempts tries"
    ),
    "write max_elapsed": (
        "deadline_s max_duration max_elapsed_time max_time max_total_time "
        "overall_timeout retry_window_after_first_call_in_seconds stop_after_delay "
        "stop_max_delay time_limit total_timeout"
    ),
    "write max_elapsed for all attempts, attempt_timeout for each": "timeout",
    "write attempt_timeout": (
        "attempt_time_limit attempt_timeout_s per_attempt_timeout per_retry_timeout "
        "per_try_timeout request_timeout try_timeout"
    ),
    "write max_attempts, max_elapsed or both": "stop stop_func",
    "write stop_event": "cancel_event event shutdown_event stop_when_event_set",
    # Delays
    "write schedule, a list of delays or one of retrykit.schedules": (
        "backoff backoff_strategy countdown default_retry_delay default_strategy delay "
        "delays interval intervals retry_delay retry_interval sleep_seconds sleep_time "
        "strategy timeouts wait wait_base wait_fixed wait_gen wait_seconds wait_time"
    ),
    "write schedule=decay(first, rate=...)": "decay_factor initial_value",
    "write schedule, a generator function of delays": "random_func wait_func",
    "write schedule=exponential(first, factor=...)": (
        "backoff_base backoff_coefficient backoff_factor backoff_multiplier "
        "backoff_rate base base_delay base_s exp_base exponential_base "
        "exponential_factor factor first_delay initial initial_backoff initial_delay "
        "initial_interval initial_wait multiplier retry_backoff start_delay "
        "start_timeout wait_exp_base wait_exponential_multiplier wait_initial"
    ),
    "write schedule=linear(step), or linear(step, first=...)": (
        "increment start wait_incrementing_increment wait_incrementing_start"
    ),
    "write schedule=uniform(min, max)": ("min_timeout wait_random_max wait_random_min"),
    "write schedule, with .cap(...) on it": (
        "backoff_cap backoff_max cap max max_backoff max_interval "
        "max_s max_sleep max_timeout max_value max_wait maximum maximum_backoff "
        "maximum_delay maximum_interval retry_backoff_max wait_exponential_max "
        "wait_incrementing_max wait_max"
    ),
    "write schedule, with .cap(...) on it, or max_elapsed for all attempts": (
        "max_delay"
    ),
    "write schedule, with .at_least(...) on it": (
        "min min_backoff min_delay min_interval min_value min_wait minimum wait_min"
    ),
    "write schedule, with .jitter(...), .full_jitter() or + uniform(0, ...)": (
        "backoff_jitter jitter jitter_factor jitter_s random_interval_size "
        "randomization_factor retry_jitter wait_jitter wait_jitter_max"
    ),
    # Errors and results
    "write on": (
        "autoretry_for catch error error_types errors exc exception exception_types "
        "exceptions exceptions_to_retry retry_exceptions retry_for retry_on_error "
        "retry_on_errors retry_on_exceptions retryable_errors retryable_exceptions"
    ),
    "write on, which may be a predicate of the error": (
        "classifier match message retry_if_exception retry_if_exception_type "
        "retry_on_exception"
    ),
    "write on for errors, on_result for results": (
        "condition is_retryable predicate retry retry_condition retry_if retry_on "
        "retry_when retryable should_retry transient when"
    ),
    "write give_up_on": (
        "abort_if abort_on dont_autoretry_for exclude fatal fatal_exceptions giveup "
        "give_up giveup_if ignore ignore_exceptions no_retry_on "
        "non_retryable_error_types non_retryable_exceptions not_on permanent "
        "retry_if_not_exception_type"
    ),
    "write on_result, a predicate that returns True for results to retry": (
        "evaluate_response_callback result result_classifier retry_if_result "
        "retry_on_result validate_response"
    ),
    "write rules, a list of Rule(on=..., schedule=..., max_attempts=...)": (
        "class_strategies connect max_unknown_attempts other overrides per_error "
        "per_class_max_attempts read strategies"
    ),
    # What a server asks for, what many calls share, nested calls
    "write hint, one of retrykit.hints": (
        "honor_retry_after respect_retry_after respect_retry_after_header retry_after "
        "retry_after_header use_retry_after value"
    ),
    'write hint_cap and on_long_hint="clip"': "max_retry_after retry_after_max",
    (
        "write schedule, with .cap(...) on it; "
        'for Retry-After write hint_cap and on_long_hint="clip"'
    ): "max_backoff_wait",
    "write budget, one of retrykit.budgets": (
        "bucket max_multiplier min_multiplier retry_budget retry_quota "
        "retry_throttling retry_tokens target_success throttle throttling "
        "token_bucket window_s"
    ),
    "write admission=[CircuitBreaker(...)], from retrykit.limits": (
        "breaker circuit circuit_breaker circuitbreaker class_thresholds "
        "failure_threshold recovery_timeout_s trip_on"
    ),
    "write admission=[RateLimit(...)], from retrykit.limits": (
        "burst calls_per_second limiter max_rate on_rate_limit per_second period qps "
        "rate rate_limit rate_limiter ratelimit requests_per_second rps"
    ),
    "write admission=[Concurrency(...)], from retrykit.limits": (
        "bulkhead concurrency concurrency_limit max_concurrency max_concurrent "
        "max_parallel max_workers parallel pool_size semaphore workers"
    ),
    'write hedge=Hedge("50ms", idempotent=True)': (
        "backup_request hedge_after hedge_delay hedge_policy hedged hedges "
        "hedging hedging_delay hedging_policy max_hedged_attempts speculative"
    ),
    "write nested": "on_nested outer",
    # Reports
    'write observers={"attempt_started": function}': (
        "before before_attempts on_attempt_start"
    ),
    'write observers={"attempt_failed": function}': (
        "after after_attempts fail_callback on_attempt_end on_error on_failure"
    ),
    'write observers={"retry_scheduled": function}': (
        "before_sleep on_backoff on_retry"
    ),
    'write observers={"succeeded": function}': "on_success",
    'write observers={"gave_up": function}': "on_giveup",
    "write observers, functions that are called with each event": (
        "callback hook hooks on_metric"
    ),
    "write observers for a report, give_up_on to stop": "on_exception",
    "write observers=[observer(levels=...)], from retrykit.integrations.logging": (
        "backoff_log_level exc_info giveup_log_level log log_level log_traceback "
        "logger on_log sec_format show_traceback"
    ),
    "read it from state_of(error)": "attempts_made elapsed_sleep history statistics",
    "write name": "operation",
    # Giving up
    "write fallback, a value or a function of the state": (
        "default default_value fallback_function fallback_value raise_on_failure "
        "raise_on_giveup retry_error_callback return_on_failure suppress"
    ),
    "write raises, which is the last error by default": "reraise",
    'write raises="retry_error"': "retry_error_cls wrap_exception",
    # HTTP
    "write on_result, or use policy() of the client in retrykit.integrations": (
        "http_statuses retry_all_server_errors retry_on_status retry_status_codes "
        "retry_statuses retryable_status_codes status_codes status_forcelist "
        "status_to_retry statuses"
    ),
    "write max_attempts, which also counts rejected responses": "status",
    "write methods as an argument of RetryTransport, RetryAdapter or the like": (
        "allowed_methods http_methods method_whitelist methods retry_methods "
        "retryable_methods"
    ),
    "set redirects on the HTTP client": (
        "raise_on_redirect redirect remove_headers_on_redirect"
    ),
    "call raise_for_status() of the response": "raise_for_status raise_on_status",
    "write session.mount(prefix, RetryAdapter())": "prefixes session",
    "write ClientSession(middlewares=[RetryMiddleware()])": "client_session",
    # Calls and tests
    "write policy, a Policy or a function that returns one": (
        "retry_config retry_kwargs retry_options retry_policy"
    ),
    "write Policy(...).call(fn, *args, **kwargs)": "f fargs fkwargs func",
    "write sleep": "sleep_fn sleep_func sleep_function sleep_using_event sleeper",
    "write max_attempts=1, or retrykit.testing.disable_retries() in tests": (
        "active disabled enabled namespace testing"
    ),
    "use retrykit.testing.virtual_time() in tests": "clock",
}
"""Names of parameters, separated by spaces, keyed by the advice for them."""

_BY_NAME = {name: advice for advice, names in ADVICE.items() for name in names.split()}

_OF_RETRIES = re.compile("attempt|backoff|jitter|retr|tries")
_TIME_LIMITS = {"max_elapsed_time", "max_time"}

RETRY_NAMES = frozenset(
    name for name in _BY_NAME if name in _TIME_LIMITS or _OF_RETRIES.search(name)
)
"""The names that hardly mean anything other than a setting of retries."""

_IN_MILLISECONDS = (
    "stop_max_delay wait_exponential_max wait_exponential_multiplier wait_fixed "
    "wait_incrementing_increment wait_incrementing_max wait_incrementing_start "
    "wait_jitter_max wait_random_max wait_random_min"
)
"""Parameters of the library `retrying`, separated by spaces."""


def advice_for(name: str) -> str:
    """Return what to write instead of a parameter of another library.

    >>> advice_for("stop_max_delay")
    'write max_elapsed, in seconds instead of milliseconds'

    Returns:
        The advice; empty if the parameter is not in `ADVICE`.
    """
    advice = _BY_NAME.get(name, "")
    unit = ", in seconds instead of milliseconds"
    return f"{advice}{unit}" if name in _IN_MILLISECONDS.split() else advice
