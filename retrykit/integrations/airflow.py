"""Airflow tasks that are retried under a policy.

    POLICY = AirflowPolicy(Policy(schedule=["1m", "1h"], max_attempts=3,
                                  on=ConnectionError))

    @task(retries=POLICY.retries, retry_policy=POLICY)
    def verify(host): ...

The tests cover the decision that an Airflow worker requests after a failed try, but not
a scheduler.

Settings that Airflow does not support are rejected. The task's own ``retries`` limits
every policy: set it to `AirflowPolicy.retries`. A cleared task starts the policy again.
Airflow's own rules apply to errors that are not Exceptions, such as the
``AirflowTaskTimeout`` of an ``execution_timeout``. They also apply if the policy itself
raises an error. An ``AirflowFailException`` ends the task without consulting the
policy.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Self, final

from retrykit._core.policy import Policy
from retrykit._internal.extras import needs
from retrykit.integrations._airflow_decision import check_policy, decide_next_try

with needs("airflow"):
    from airflow.sdk import RetryDecision, RetryPolicy

__all__ = ["AirflowPolicy"]


@final
@dataclass(frozen=True)
class AirflowPolicy(RetryPolicy):
    """A policy as the ``retry_policy`` of an Airflow task.

    >>> from retrykit import Policy
    >>> policy = Policy(schedule=["1m"], max_attempts=2)
    >>> AirflowPolicy(policy).evaluate(OSError("refused"), try_number=1, max_tries=1)
    RetryDecision(action=<RetryAction.RETRY: 'retry'>, \
retry_delay=datetime.timedelta(seconds=60), reason='attempt 1: another one in 1m')

    Attributes:
        policy: The policy, which must have a `max_attempts`.

    Raises:
        ConfigError: Airflow does not support the policy, or it cannot be serialized.
    """

    policy: Policy

    def __post_init__(self) -> None:
        check_policy(self.policy)

    @property
    def retries(self) -> int:
        """The number of ``retries`` that a task with the policy needs. Count, >= 0."""
        return check_policy(self.policy) - 1

    def evaluate(
        self,
        exception: BaseException,
        try_number: int,
        max_tries: int,
        context: Mapping[str, Any] | None = None,
    ) -> RetryDecision:
        """Decide whether a failed try is retried; called by Airflow."""
        if not isinstance(exception, Exception):
            return RetryDecision.default()
        policy = self.policy
        decision = decide_next_try(policy, exception, try_number, max_tries, context)
        if decision.delay is None:
            return RetryDecision.fail(decision.reason)
        return RetryDecision.retry(timedelta(seconds=decision.delay), decision.reason)

    def serialize(self) -> dict[str, Any]:
        """Return the policy as plain data; called by Airflow."""
        return {"__type": "AirflowPolicy", "policy": self.policy.to_dict()}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> Self:
        """Return the policy that `serialize` wrote; called by Airflow."""
        return cls(Policy.from_dict(data["policy"]))
