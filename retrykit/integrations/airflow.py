"""Tasks of Airflow that are held to a policy.

    POLICY = AirflowPolicy(Policy(schedule=["1m", "1h"], max_attempts=3,
                                  max_elapsed=None, on=ConnectionError))

    @task(retries=POLICY.retries, retry_policy=POLICY)
    def verify(host): ...

Not run against a scheduler by this project's tests: they ask it what follows a
failed try, as a worker of Airflow does.

What Airflow cannot do is refused, or it holds as it stands here. The task's own
``retries`` bounds every policy: give it `AirflowPolicy.retries`. A task that is
cleared begins anew. What is no Exception, such as the ``AirflowTaskTimeout`` of
an ``execution_timeout``, is followed by Airflow's own rules, and so is a policy
that fails. After an ``AirflowFailException`` nobody is asked.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Self, final

from airflow.sdk import RetryDecision, RetryPolicy

from retrykit.integrations._airflow_decision import check_policy, followed
from retrykit.policy.policy import Policy

__all__ = ["AirflowPolicy"]


@final
@dataclass(frozen=True)
class AirflowPolicy(RetryPolicy):
    """A policy, for the ``retry_policy`` of a task.

    >>> from retrykit import Policy
    >>> held = AirflowPolicy(Policy(schedule=["1m"], max_attempts=2, max_elapsed=None))
    >>> held.evaluate(OSError("refused"), try_number=1, max_tries=held.retries)
    RetryDecision(action=<RetryAction.RETRY: 'retry'>, \
retry_delay=datetime.timedelta(seconds=60), reason='attempt 1: another one in 1m')

    Attributes:
        policy: What tasks are held to.

    Raises:
        ConfigError: Airflow cannot hold tasks to it, or it has no form as plain
            data; the error says what to write instead.
    """

    policy: Policy

    def __post_init__(self) -> None:
        check_policy(self.policy)

    @property
    def retries(self) -> int:
        """What a task needs as its ``retries``, for all attempts of the policy."""
        return check_policy(self.policy) - 1

    def evaluate(
        self,
        exception: BaseException,
        try_number: int,
        max_tries: int,
        context: Mapping[str, Any] | None = None,
    ) -> RetryDecision:
        """Decide what follows a failed try; for Airflow."""
        if not isinstance(exception, Exception):
            return RetryDecision.default()
        told = followed(self.policy, exception, try_number, max_tries, context)
        if told.delay is None:
            return RetryDecision.fail(told.reason)
        return RetryDecision.retry(timedelta(seconds=told.delay), told.reason)

    def serialize(self) -> dict[str, Any]:
        """Return it as plain data; for Airflow."""
        return {"__type": "AirflowPolicy", "policy": self.policy.to_dict()}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> Self:
        """Return the policy that `serialize` wrote; for Airflow."""
        return cls(Policy.from_dict(data["policy"]))
