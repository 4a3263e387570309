"""What follows a failed try of a task of Airflow. Airflow is not imported here.

Airflow calls attempts tries, keeps their number, and of what came of them nothing:
see `retrykit.durable.attempt_replay`.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, final

from retrykit._internal.durations import format_duration
from retrykit._internal.validation import check_instance, invalid_setting
from retrykit.durable.attempt_replay import check_replayable, replay_state
from retrykit.policy.decision import Stop
from retrykit.policy.policy import Policy
from retrykit.state.retry_state import Failure

__all__ = ["Followed", "check_policy", "followed"]

# What is no number of seconds to a `timedelta`, nor a date when it is added to one.
_LONGEST: Final = 100 * 365.25 * 86_400


@final
class Followed(NamedTuple):
    """What follows a failed try.

    Attributes:
        delay: The delay before the next one, in seconds; None if there is none.
        reason: Why, as a text.
    """

    delay: float | None
    reason: str


def check_policy(policy: object) -> int:
    """Check that Airflow can hold tasks to a policy.

    Returns:
        How many tries it makes in all, >= 1.

    Raises:
        ConfigError: It is no policy, or one that asks for what Airflow is not
            asked for here, or that has no form as plain data.
    """
    policy = check_instance(
        "policy", policy, Policy, "write AirflowPolicy(Policy(...))"
    )
    check_replayable(policy)
    for name, suggestion in _NOT_HERE.items():
        if getattr(policy, name) is not None:
            rule = "None in Airflow"
            raise invalid_setting(name, rule, getattr(policy, name), suggestion)
    if policy.max_attempts is None:
        rule = "a number in Airflow, whose tasks have a number of retries"
        raise invalid_setting(
            "max_attempts", rule, None, "count what the schedule allows"
        )
    policy.to_dict()
    return policy.max_attempts


_NOT_HERE: Final = {
    "max_elapsed": "it does not tell when the first try began: end the schedule",
    "attempt_timeout": "give the task an execution_timeout",
    "budget": "each try is made in a process of its own: give the task a pool",
}


def followed(
    policy: Policy,
    error: Exception,
    number: int,
    most: int,
    context: Mapping[str, Any] | None,
) -> Followed:
    """Decide what follows a failed try.

    Args:
        policy: What the task is held to.
        error: What the try raised.
        number: Its number, as Airflow counts: not anew where a task is cleared.
        most: The number of the last try after which Airflow makes another one.
        context: The context of the task; None if that is not known.
    """
    name, retries = _task(context, most)
    # Where a task is cleared, `retries` more are allowed, and so is the policy.
    attempt = max(number - max(most - retries, 0), 1)
    failure = Failure(attempt, error, None, 0.0, 0.0, None)
    decision = policy.decide(replay_state(policy, name, attempt), failure)
    if isinstance(decision, Stop):
        return Followed(None, f"attempt {attempt}: {decision.reason.explanation}")
    delay = min(decision.delay, _LONGEST)
    reason = f"attempt {attempt}: another one in {format_duration(round(delay, 3))}"
    if number > most:
        reason += f", but the task has retries={retries}: set AirflowPolicy.retries"
    return Followed(delay, reason)


def _task(context: Mapping[str, Any] | None, most: int) -> tuple[str, int]:
    """Return what tells a task from all others, and its `retries`."""
    if context is None:
        return "", most
    ti = context["ti"]
    ids = ti.dag_id, ti.run_id, ti.task_id, ti.map_index
    return "/".join(map(str, ids)), context["task"].retries
