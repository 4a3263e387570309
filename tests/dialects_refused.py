"""Settings of dialects that are wrong, each with the message that it gets."""

from retrykit import dialects

__all__ = ["REFUSED"]

SECONDS = 'give seconds as a number, a timedelta, or text such as "1h30m"'

REFUSED = {
    "version must be one of '2.0', '2.1', got '2.2'": (
        lambda: dialects.aws_standard(version="2.2")
    ),
    "max_attempts must be a whole number >= 1, got -3": (
        lambda: dialects.aws_adaptive(max_attempts=-3)
    ),
    "tries must be a whole number >= 1, got 0": lambda: dialects.finagle(tries=0),
    "max_attempts must be a whole number >= 2, got 1": (
        lambda: dialects.grpc(max_attempts=1)
    ),
    "max_tokens must be a whole number >= 1 and <= 1000, got 1001": (
        lambda: dialects.grpc(max_tokens=1001)
    ),
    "max_tokens must be a whole number >= 1, got 0.5": (
        lambda: dialects.grpc(max_tokens=0.5)
    ),
    "initial_backoff must be a duration > 0, got 0": (
        lambda: dialects.grpc(initial_backoff=0)
    ),
    f"max_backoff must be a finite number >= 0, got -2; {SECONDS}": (
        lambda: dialects.grpc(max_backoff=-2)
    ),
    "backoff_multiplier must be a finite number >= 1, got 0.5": (
        lambda: dialects.grpc(backoff_multiplier=0.5)
    ),
    "jitter must be one of 'proportional', 'full', got '2018'": (
        lambda: dialects.grpc(jitter="2018")
    ),
    f"median_first_retry_delay must be a finite number >= 0, got -2; {SECONDS}": (
        lambda: dialects.polly(median_first_retry_delay=-2)
    ),
    "retry_count must be a whole number >= 0, got -1": (
        lambda: dialects.polly(retry_count=-1)
    ),
    "max_retries must be a whole number >= 0, got None": (
        lambda: dialects.celery(max_retries=None)
    ),
    "retry_backoff must be a whole number >= 0, got 1.5": (
        lambda: dialects.celery(retry_backoff=1.5)
    ),
    "retry_backoff_max must be a whole number >= 0, got '10m'": (
        lambda: dialects.celery(retry_backoff_max="10m")
    ),
    "retry_jitter must be one of 'full', 'none', got True": (
        lambda: dialects.celery(retry_jitter=True)
    ),
    f"default_retry_delay must be a finite number >= 0, got -1; {SECONDS}": (
        lambda: dialects.celery(default_retry_delay=-1)
    ),
    "max_retries must be a whole number >= 0, got -1": (
        lambda: dialects.dramatiq(max_retries=-1)
    ),
    f"min_backoff must be a finite number >= 0, got -1; {SECONDS}": (
        lambda: dialects.dramatiq(min_backoff=-1)
    ),
    "min_backoff must be a finite number >= 0.001, got 0.0": (
        lambda: dialects.dramatiq(min_backoff=0)
    ),
    f"max_backoff must be a finite number >= 0, got -1; {SECONDS}": (
        lambda: dialects.dramatiq(max_backoff=-1)
    ),
    "max_backoff must be a finite number >= 0.001, got 0.0": (
        lambda: dialects.dramatiq(max_backoff="0s")
    ),
    "retry must be a whole number >= 0, got -1": lambda: dialects.sidekiq(retry=-1),
    f"initial_interval must be a finite number >= 0, got -3; {SECONDS}": (
        lambda: dialects.temporal(initial_interval=-3)
    ),
    "backoff_coefficient must be a finite number >= 1, got 0.5": (
        lambda: dialects.temporal(backoff_coefficient=0.5)
    ),
    f"maximum_interval must be a finite number >= 0, got -1; {SECONDS}": (
        lambda: dialects.temporal(maximum_interval=-1)
    ),
    "maximum_interval must be a finite number >= 1, got 0.5; no shorter than "
    "initial_interval": lambda: dialects.temporal(maximum_interval=0.5),
    "maximum_attempts must be a whole number >= 0, got -1": (
        lambda: dialects.temporal(maximum_attempts=-1)
    ),
}
