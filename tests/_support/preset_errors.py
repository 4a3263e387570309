"""Invalid settings of presets, by the message of their error."""

from retrykit import presets

__all__ = ["ERRORS"]


ERRORS = {
    "random_jitter_range must be a finite number >= 0 and <= 2, got 3.0; "
    "no longer than initial_backoff": (
        lambda: presets.azure_storage(initial_backoff=2)
    ),
    "version must be one of '2.0', '2.1', got '2.2'": (
        lambda: presets.aws_standard(version="2.2")
    ),
    "max_attempts must be an integer >= 1, got -3": (
        lambda: presets.aws_adaptive(max_attempts=-3)
    ),
    "tries must be an integer >= 1, got 0": lambda: presets.finagle(tries=0),
    "max_attempts must be an integer >= 2, got 1": (
        lambda: presets.grpc(max_attempts=1)
    ),
    "max_tokens must be an integer >= 1 and <= 1000, got 1001": (
        lambda: presets.grpc(max_tokens=1001)
    ),
    "max_tokens must be an integer >= 1, got 0.5": (
        lambda: presets.grpc(max_tokens=0.5)
    ),
    "initial_backoff must be a duration > 0, got 0": (
        lambda: presets.grpc(initial_backoff=0)
    ),
    "max_backoff must be a finite number >= 0, got -2": (
        lambda: presets.grpc(max_backoff=-2)
    ),
    "backoff_multiplier must be a finite number >= 1, got 0.5": (
        lambda: presets.grpc(backoff_multiplier=0.5)
    ),
    "jitter must be one of 'proportional', 'full', got '2018'": (
        lambda: presets.grpc(jitter="2018")
    ),
    "median_first_retry_delay must be a finite number >= 0, got -2": (
        lambda: presets.polly(median_first_retry_delay=-2)
    ),
    "retry_count must be an integer >= 0, got -1": (
        lambda: presets.polly(retry_count=-1)
    ),
    "max_retries must be an integer >= 0, got None": (
        lambda: presets.celery(max_retries=None)
    ),
    "retry_backoff must be an integer >= 0, got 1.5": (
        lambda: presets.celery(retry_backoff=1.5)
    ),
    "retry_backoff_max must be an integer >= 0, got '10m'": (
        lambda: presets.celery(retry_backoff_max="10m")
    ),
    "retry_jitter must be one of 'full', 'none', got True": (
        lambda: presets.celery(retry_jitter=True)
    ),
    "default_retry_delay must be a finite number >= 0, got -1": (
        lambda: presets.celery(default_retry_delay=-1)
    ),
    "max_retries must be an integer >= 0, got -1": (
        lambda: presets.dramatiq(max_retries=-1)
    ),
    "min_backoff must be a finite number >= 0, got -1": (
        lambda: presets.dramatiq(min_backoff=-1)
    ),
    "min_backoff must be a finite number >= 0.001, got 0.0": (
        lambda: presets.dramatiq(min_backoff=0)
    ),
    "max_backoff must be a finite number >= 0, got -1": (
        lambda: presets.dramatiq(max_backoff=-1)
    ),
    "max_backoff must be a finite number >= 0.001, got 0.0": (
        lambda: presets.dramatiq(max_backoff="0s")
    ),
    "retry must be an integer >= 0, got -1": lambda: presets.sidekiq(retry=-1),
    "initial_interval must be a finite number >= 0, got -3": (
        lambda: presets.temporal(initial_interval=-3)
    ),
    "backoff_coefficient must be a finite number >= 1, got 0.5": (
        lambda: presets.temporal(backoff_coefficient=0.5)
    ),
    "maximum_interval must be a finite number >= 0, got -1": (
        lambda: presets.temporal(maximum_interval=-1)
    ),
    "maximum_interval must be a finite number >= 1, got 0.5; no shorter than "
    "initial_interval": lambda: presets.temporal(maximum_interval=0.5),
    "maximum_attempts must be an integer >= 0, got -1": (
        lambda: presets.temporal(maximum_attempts=-1)
    ),
    "retry_exponential_backoff must be a finite number >= 1, got 0.5; 0 for a fixed "
    "delay": lambda: presets.airflow(retry_exponential_backoff=0.5),
    "max_backoff must be a finite number >= 10, got 1.0; no shorter than min_backoff": (
        lambda: presets.cloud_tasks(min_backoff=10, max_backoff=1)
    ),
    "max_delay_seconds must be a finite number >= 9, got 3.0; no shorter than "
    "interval_seconds": lambda: presets.step_functions(
        interval_seconds=9, max_delay_seconds=3
    ),
    "fetch_retry_maxtimeout must be a finite number >= 10, got 5.0; no shorter than "
    "fetch_retry_mintimeout": lambda: presets.npm(fetch_retry_maxtimeout=5),
    "jitter must be True or False, got 'yes'": lambda: presets.ky(jitter="yes"),
    "factor must be a finite number >= 2, got 1.5; or randomize=False": (
        lambda: presets.node_retry(randomize=True, factor=1.5)
    ),
    "max_timeout must be a finite number >= 1, got 0.5; no shorter than min_timeout": (
        lambda: presets.node_retry(max_timeout=0.5)
    ),
    "attempts must be an integer >= 1, got 'endless'": (
        lambda: presets.active_job(attempts="endless")
    ),
}
