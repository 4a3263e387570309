"""Retries for urllib3.

Needs the extra ``retrykit[urllib3]``. Best is a decorator around the whole of
what is done with a response. urllib3 by itself retries too, three times, unless
it is told not to::

    import urllib3
    from retrykit import retry
    from retrykit.integrations import urllib3 as retries

    pool = urllib3.PoolManager(retries=retries.PolicyRetry(max_attempts=1))

    @retry(retries.policy(max_attempts=4))
    def fetch(url):
        return pool.request("GET", url)

Where that cannot be, a `PolicyRetry` stands wherever a ``urllib3.Retry`` does;
`state_of` of a response or an error has its history::

    pool = urllib3.PoolManager(retries=retries.PolicyRetry(max_attempts=4))
"""

from typing import Unpack

from retrykit.integrations._http.policy import (
    IDEMPOTENT,
    merge_client_defaults,
    retry_after,
)
from retrykit.integrations.urllib3.policy_retry import PolicyRetry
from retrykit.integrations.urllib3.transient import transient
from retrykit.policy.policy import Policy
from retrykit.policy.validators import Changes

__all__ = ["IDEMPOTENT", "PolicyRetry", "policy", "retry_after", "transient"]


def policy(base: Policy | None = None, /, **changes: Unpack[Changes]) -> Policy:
    """Return a policy for urllib3: `transient` and `retry_after` joined to one.

    >>> policy(max_attempts=3)
    Policy(max_attempts=3, on=transient, on_result=transient, hint=retry_after())

    Args:
        base: What it is derived from; by default `Policy()`. What it says itself
            of errors, results and hints is kept.
        **changes: Settings, as for `Policy`.

    Raises:
        ConfigError: A setting is wrong.
    """
    return merge_client_defaults(base, changes, transient)
