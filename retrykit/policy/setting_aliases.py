"""Names of our settings in other libraries, for suggestions in errors."""

from collections.abc import Collection

from retrykit._internal.validation import did_you_mean

__all__ = ["suggest_setting"]

_ALIASES = {
    "max_attempts, which counts the first call too": (
        "attempts max_retries max_tries num_retries retries retry_limit "
        "stop_max_attempt_number times total tries"
    ),
    "max_elapsed": (
        "max_elapsed_time max_time stop_max_delay time_limit total_timeout"
    ),
    "max_elapsed for all attempts, attempt_timeout for each": "timeout",
    "attempt_timeout": (
        "attempt_time_limit per_attempt_timeout per_retry_timeout per_try_timeout "
        "request_timeout try_timeout"
    ),
    "schedule, a list of delays or one of retrykit.schedules": (
        "backoff backoff_factor delay delays initial interval intervals sleep strategy "
        "wait wait_base wait_fixed wait_gen wait_initial"
    ),
    "schedule, with .cap() on it": (
        "backoff_max cap max_backoff max_delay max_interval max_wait maximum wait_max"
    ),
    "schedule, with .jitter() or .full_jitter() on it": "jitter wait_jitter",
    "schedule=exponential(first, factor=...)": "exp_base factor multiplier",
    "on": "catch error errors exc exception exceptions predicate retry retry_on when",
    "give_up_on": "abort_on fatal giveup give_up ignore not_on permanent",
    "on_result": "result retry_on_result status_forcelist",
    "rules, a list of Rule(on=..., schedule=...)": "overrides per_error strategies",
    "hint, one of retrykit.hints": (
        "honor_retry_after respect_retry_after respect_retry_after_header retry_after "
        "retry_after_header use_retry_after"
    ),
    "hint_cap": "max_retry_after retry_after_max",
    "budget, one of retrykit.budgets": (
        "bucket retry_budget retry_quota retry_throttling retry_tokens throttle "
        "throttling token_bucket"
    ),
    "nested": "outer on_nested",
    "observers": (
        "after before before_sleep callback hook log logger on_backoff on_error "
        "on_failure on_giveup on_retry on_success"
    ),
    "raises": "reraise retry_error_cls",
    "deadline (a rule) or max_elapsed (a time)": "deadline_s",
}
_BY_ALIAS = {
    alias: meant for meant, names in _ALIASES.items() for alias in names.split()
}


def suggest_setting(name: str, known: Collection[str]) -> str:
    """Suggest a setting in place of one that does not exist.

    >>> suggest_setting("max_retries", ["max_attempts", "max_failures"])
    'write max_attempts, which counts the first call too'
    """
    if name in _BY_ALIAS:
        return f"write {_BY_ALIAS[name]}"
    return did_you_mean(name, known) or f"there are {', '.join(known)}"
