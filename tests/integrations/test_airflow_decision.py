"""What follows a failed try of a task of Airflow, which is not needed for it."""

from types import SimpleNamespace

import pytest

from retrykit import ConfigError, GiveUp, Policy, RetryAfter, schedules as s
from retrykit._core.rules import Rule
from retrykit.hints import attribute
from retrykit.integrations._airflow_decision import check_policy, decide_next_try
from retrykit.testing import ScriptedFunction, virtual_time

PATIENT = Policy(schedule=["1m", "1h", "1d"], max_attempts=4, on=ConnectionError)
JITTERED = PATIENT.replace(schedule=s.constant(100).full_jitter())
REFUSED = ConnectionError("refused")


def context(retries=3, **other):
    """Return a context of Airflow with the attributes that the decision reads."""
    ids = {"dag_id": "hosts", "run_id": "monday", "task_id": "verify", "map_index": -1}
    ids |= other
    return {"ti": SimpleNamespace(**ids), "task": SimpleNamespace(retries=retries)}


def next_try(number, error=REFUSED, *, policy=PATIENT, most=3, known=None):
    known = context(retries=3) if known is None else known
    return decide_next_try(policy, error, number, most, known)


def test_the_policy_sets_the_delay():
    assert [next_try(number).delay for number in (1, 2, 3)] == [60.0, 3600.0, 86_400.0]
    assert next_try(2).reason == "attempt 2: another one in 1h"


def test_the_policy_ends_the_task():
    assert next_try(4) == (None, "attempt 4: max attempts reached")
    assert next_try(1, KeyError("host")) == (
        None,
        "attempt 1: the error is not retryable",
    )


def test_a_task_may_request_a_delay_or_give_up():
    assert next_try(1, RetryAfter("90s")).delay == 90.0
    assert next_try(1, GiveUp(REFUSED)) == (
        None,
        "attempt 1: ended by give_up_on, GiveUp or a hint",
    )


def test_an_error_may_request_a_delay():
    busy = ConnectionError("busy")
    busy.wait = 90
    hinted = PATIENT.replace(hint=attribute("wait"), hint_jitter=0)
    assert next_try(1, busy, policy=hinted).delay == 90.0


def test_an_error_that_requests_no_delay_uses_the_schedule():
    busy = ConnectionError("busy")
    busy.wait = 0
    hinted = PATIENT.replace(hint=attribute("wait"))
    assert [next_try(number, busy, policy=hinted).delay for number in (1, 2)] == [
        60,
        3600,
    ]


def test_delays_are_limited_to_a_century():
    endless = PATIENT.replace(schedule=[1e300], max_attempts=2)
    assert next_try(1, policy=endless).delay == 100 * 365.25 * 86_400


def test_every_worker_draws_the_same_delay_for_a_task():
    delays = [next_try(number, policy=JITTERED).delay for number in (1, 1, 2)]
    others = {"dag_id": "a"}, {"run_id": "tuesday"}, {"task_id": "b"}, {"map_index": 7}
    decisions = [
        next_try(1, policy=JITTERED, known=context(**other)) for other in others
    ]
    assert delays[0] == delays[1]
    assert len({*delays, *(other.delay for other in decisions)}) == 6


def test_every_version_draws_the_same_delay_for_a_task():
    assert next_try(1, policy=JITTERED).delay == 23.877319410282904


def test_the_delays_are_those_of_a_live_call():
    policy = PATIENT.replace(schedule=s.decorrelated(1).cap("1h"), seed=7)
    with virtual_time():
        outcome = policy.run(ScriptedFunction([REFUSED] * 4))
    delays = [failure.delay for failure in outcome.state.failures]
    assert [next_try(number, policy=policy).delay for number in (1, 2, 3, 4)] == delays


@pytest.mark.parametrize(
    ("number", "most", "attempt"),
    [(1, 3, 1), (5, 7, 1), (6, 7, 2), (2, 2, 2), (1, 9, 1)],
    ids=["new", "cleared", "cleared twice", "retries raised", "retries lowered"],
)
def test_a_cleared_task_starts_the_policy_again(number, most, attempt):
    """Airflow continues to count tries, and allows `retries` more."""
    assert next_try(number, most=most).reason.startswith(f"attempt {attempt}: ")


def test_only_the_number_is_used_without_a_context():
    assert decide_next_try(PATIENT, REFUSED, 2, 3, None).delay == 3600.0


def test_the_reason_says_if_airflow_ends_before_the_policy():
    decisions = next_try(2, most=1, known=context(retries=1))
    assert decisions.reason == (
        "attempt 2: another one in 1h, but the task has retries=1; "
        "set it to AirflowPolicy.retries"
    )
    last = next_try(2, most=2, known=context(retries=2))
    assert last.reason == "attempt 2: another one in 1h"


def test_a_policy_for_airflow_must_be_serializable():
    with pytest.raises(ConfigError, match="on must be importable exception types"):
        check_policy(PATIENT.replace(on=lambda error: "refused" in str(error)))


def test_a_policy_for_airflow_has_no_rules():
    with pytest.raises(ConfigError, match="an engine that keeps no errors"):
        check_policy(PATIENT.replace(rules=[Rule(on=OSError, schedule=[1])]))


def test_a_policy_for_airflow_has_max_attempts():
    assert check_policy(PATIENT) == 4
