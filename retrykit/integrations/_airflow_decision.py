"""The decision whether to retry a failed Airflow task; it imports no Airflow.

Airflow calls attempts *tries*. It keeps their number but not their errors, so the state
is reconstructed by `retrykit.durable._attempt_replay`.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, final

from retrykit._core.decision import Stop
from retrykit._core.policy import Policy
from retrykit._core.retry_state import Failure
from retrykit._internal.durations import CENTURY, format_duration
from retrykit._internal.validation import check_instance, invalid_setting
from retrykit.durable._attempt_replay import check_replayable, replay_state
from retrykit.durable._job import check_job_policy

__all__ = ["TryDecision", "check_policy", "decide_next_try"]

_UNSUPPORTED: Final = {
    "max_elapsed": "Airflow does not say when the first try began: limit max_attempts",
    "attempt_timeout": "give the task an execution_timeout",
    "budget": "each try runs in a separate process: give the task a pool",
}


@final
class TryDecision(NamedTuple):
    """Decision after a failed try.

    Attributes:
        delay: Seconds until the next try, if the task has one left; None if the policy
            allows none.
        reason: The reason for the decision, for the log of the task.
    """

    delay: float | None
    reason: str


def check_policy(policy: object) -> int:
    """Return how many tries a policy allows.

    Raises:
        ConfigError: Airflow cannot apply the policy.
    """
    suggestion = "write AirflowPolicy(Policy(...))"
    policy = check_instance("policy", policy, Policy, suggestion)
    check_replayable(policy)
    check_job_policy(policy)
    for name, suggestion in _UNSUPPORTED.items():
        if getattr(policy, name) is not None:
            rule = "None in Airflow"
            raise invalid_setting(
                name, rule, getattr(policy, name), suggestion, code="not-here"
            )
    if policy.max_attempts is None:
        rule = "a number in Airflow, since its tasks limit their retries"
        suggestion = "set it to the number of delays in the schedule, plus 1"
        raise invalid_setting("max_attempts", rule, None, suggestion, code="not-here")
    # Airflow serializes it later: raise an error now if that is impossible.
    policy.to_dict()
    return policy.max_attempts


def decide_next_try(
    policy: Policy,
    error: Exception,
    try_number: int,
    max_tries: int,
    context: Mapping[str, Any] | None,
) -> TryDecision:
    """Decide whether a failed try is retried.

    Args:
        policy: The policy of the task.
        error: The error of the try.
        try_number: The number of the try, >= 1, which keeps counting after a task is
            cleared.
        max_tries: The number of the last try that Airflow retries.
        context: The context of the task, with its ids and ``retries``; None if it is
            unknown, in which case the task counts as never cleared.
    """
    name, retries = "", max_tries
    if context is not None:
        ti, retries = context["ti"], context["task"].retries
        name = "/".join(map(str, (ti.dag_id, ti.run_id, ti.task_id, ti.map_index)))
    # A cleared task gets `retries` more tries, and starts the policy again.
    attempt = max(try_number - max(max_tries - retries, 0), 1)
    failure = Failure(attempt, error, None, 0.0, 0.0, None)
    decision = policy.decide(replay_state(policy, name, attempt), failure)
    if isinstance(decision, Stop):
        return TryDecision(None, f"attempt {attempt}: {decision.reason.explanation}")
    delay = min(decision.delay, CENTURY)
    reason = f"attempt {attempt}: another one in {format_duration(round(delay, 3))}"
    if try_number > max_tries:
        reason += f", but the task has retries={retries}"
        reason += "; set it to AirflowPolicy.retries"
    return TryDecision(delay, reason)
