"""Names that users look for in the wrong package, or know from other libraries."""

from collections.abc import Iterable

from retrykit._internal.validation import did_you_mean

__all__ = ["HOMES", "suggest_import"]

HOMES = {
    "retrykit": (
        "Again AsArgument AttemptTimeout Backoff CircuitOpenError ConfigError Failure "
        "GiveUp Hedge Layer Layers NestedRetryError Outcome Policy RefusedError "
        "RetryAfter RetryError RetryState RetrykitError Rule Stop StopReason "
        "WithError WithValue aretry aretrying chain current_state last_result "
        "layers observe policy_of resume retry retrying state_of with_policy"
    ),
    "retrykit.schedules": (
        "Schedule constant decay decorrelated exponential fibonacci google_interval "
        "linear polly_interval polynomial sequence uniform"
    ),
    "retrykit.hints": (
        "attribute first_of grpc_pushback milliseconds parse_hint reset_at retry_after"
    ),
    "retrykit.budgets": (
        "Budget FleetBudget RatioBudget Registry Throttle TokenBucket balances shared"
    ),
    "retrykit.conditions": (
        "AnyOf ErrorNames Excluding HttpFailures StatusCodes any_of"
    ),
    "retrykit.limits": (
        "AIMD Adapted Adaptive AdaptiveLimit AdaptiveRateLimit AdaptiveRateMetrics "
        "CircuitBreaker CircuitChange CircuitMetrics Concurrency ConcurrencyMetrics "
        "Gradient2 Lease Limit RateLimit RateMetrics Refusal Vegas"
    ),
    "retrykit.integrations.redis": "RedisBudget",
    "retrykit.presets": (
        "active_job aiohttp_retry airflow anthropic apt argo aws_adaptive "
        "aws_dynamodb aws_legacy aws_sdk aws_standard axios_retry azure_core "
        "azure_storage backoff_expo bullmq celery client_go cloud_tasks curl "
        "dagster dbos_step dramatiq elastic_transport fern finagle google "
        "google_api_core google_genai got grpc hostname_verification httpx_retries "
        "huey kubernetes ky langchain node_retry npm oban openai p_retry pip polly "
        "prefect procrastinate pymongo redis_py requests rq sidekiq stainless "
        "stamina step_functions stripe systemd taskiq temporal tenacity_default "
        "undici urllib3 uv wget zizq"
    ),
    "retrykit.testing": (
        "AsyncScriptedFunction FakeClock ScriptedFunction disable_retries "
        "limit_retries record virtual_time"
    ),
    "retrykit.durable": "Job JobFailed idempotency_key",
    "retrykit.integrations.httpx": "AsyncRetryTransport RetryTransport",
    "retrykit.integrations.requests": "RetryAdapter",
    "retrykit.integrations.aiohttp": "RetryMiddleware",
    "retrykit.integrations.urllib3": "RetryPoolManager",
    "retrykit.integrations.grpc": "RetryInterceptor async_interceptors",
}
"""Public names, separated by spaces, keyed by the module that has them."""

_ADVICE = {
    "write Policy(...).call(fn)": "AsyncRetrying AsyncRetryingCaller Retrying "
    "RetryingCaller call",
    "write @retry": "on_exception retryable retry_async",
    "write @retry(on=(), on_result=predicate)": "on_predicate retry_on_result",
    "write for attempt in retrying(...)": "retry_context",
    "write raise RetryAfter": "TryAgain",
    "write admission=[CircuitBreaker(...)] in the policy": "circuit circuit_breaker "
    "circuitbreaker",
    "write hedge=Hedge(...) in the policy": "Hedging hedged hedging",
    "write AdaptiveRateLimit of retrykit.limits": "AdaptiveRateLimiter "
    "ClientRateLimiter",
    "write Concurrency of retrykit.limits": (
        "Bulkhead CapacityLimiter ConcurrencyLimit Semaphore bulkhead"
    ),
    "write RateLimit of retrykit.limits": "RateLimiter Limiter",
    "write fallback=... in the policy": "Fallback fallback",
    "write attempt_timeout=... in the policy": "Timeout timeout",
    "write RetryState": "RetryCallState",
    "write exponential(...) of retrykit.schedules": "ExponentialBackoff expo",
    "write fibonacci(...) of retrykit.schedules": "fibo",
    "write constant(...) of retrykit.schedules": "ConstantBackoff fixed",
    "write .full_jitter() on a schedule": "full_jitter",
    "write + uniform(0, 1) on a schedule": "random_jitter",
    "write disable_retries() of retrykit.testing": "set_active set_testing no_retries",
    "write observers=[...] in the policy, or observe(...)": (
        "RetryHook after_log after_nothing before_log before_nothing before_sleep_log "
        "before_sleep_nothing on_retry"
    ),
    "write sleep=... in the policy": "sleep sleep_using_event",
}
"""Names of other libraries, separated by spaces, keyed by what to write."""

_PREFIXES = {
    "stop_": "write max_attempts=..., max_elapsed=... or both in the policy",
    "wait_": "write schedule=... in the policy, with retrykit.schedules",
    "retry_": "write on=... for errors, on_result=... for results",
}


def suggest_import(package: str, name: str, known: Iterable[str]) -> str:
    """Return what to write instead of a name that a package does not have.

    >>> suggest_import("retrykit", "exponential", [])
    'write from retrykit.schedules import exponential'
    >>> suggest_import("retrykit", "wait_fixed", [])
    'write schedule=... in the policy, with retrykit.schedules'

    Returns:
        The suggestion; empty if there is none.
    """
    for home, names in HOMES.items():
        if name in names.split():
            return f"write from {home} import {name}" if home != package else ""
    for advice, names in _ADVICE.items():
        if name in names.split():
            return advice
    similar = did_you_mean(name, known)
    return similar or next((y for x, y in _PREFIXES.items() if name.startswith(x)), "")
