"""Jobs on engines that store only the number of the attempt."""

from hypothesis import given

from retrykit import Policy, schedules as s
from retrykit._core.limits import override
from retrykit._core.retry_state import Failure
from retrykit.durable import Envelope, Job
from retrykit.durable._attempt_replay import envelope_for_attempt, replay_state
from retrykit.hints import attribute
from retrykit.testing import ScriptedFunction, virtual_time
from retrykit.testing.strategies import seeds
from tests._support.exact_policies import EXACT_POLICIES


def fail():
    raise ConnectionError("refused")


def envelope_after(policy, attempt, name="job-7"):
    """Return the envelope after an attempt of which only the number is known."""
    with virtual_time():
        job = Job(fail, policy, "verify")
        return job.attempt(
            envelope_for_attempt(job, name, attempt, epoch=0.0), [], {}
        ).envelope


def live_delays(policy):
    """Return the delays of a live call that fails every time."""
    with virtual_time():
        outcome = policy.run(ScriptedFunction([ConnectionError("refused")] * 8 + [...]))
    return [failure.delay for failure in outcome.state.failures]


@given(EXACT_POLICIES, seeds())
def test_the_delay_is_that_of_a_live_call(policy, seed):
    policy = override(
        policy,
        seed=seed,
        rules=(),
        hint=None,
        budget=None,
        max_elapsed=None,
        deadline="stop",
        max_failures=50,
    )
    for number, delay in enumerate(live_delays(policy), start=1):
        assert envelope_after(policy, number).state.next_delay == delay


def test_a_schedule_based_on_the_previous_delay_keeps_growing():
    policy = Policy(schedule=s.decorrelated(1).cap("1h"), max_attempts=9, seed=3)
    delays = [envelope_after(policy, number).state.next_delay for number in range(1, 9)]
    assert delays == live_delays(policy)[:8]
    assert max(delays) > 3 * delays[0]


def test_random_delays_depend_on_the_job_not_the_process():
    policy = Policy(schedule=s.constant(100).full_jitter())
    delays = [
        round(envelope_after(policy, number, name).state.next_delay, 3)
        for name in ("job-7", "job-8")
        for number in (1, 2)
    ]
    assert delays == [20.055, 95.259, 69.212, 63.716]


def test_the_envelope_marks_unknown_errors():
    after = envelope_after(Policy(schedule=s.constant(1)), 4)
    assert after.key == "job-7:5"
    assert after.counts == {"unknown": 3, "ConnectionError": 1}
    assert [failure.describe() for failure in after.state.failures] == [
        "unknown: not kept by the engine",
        "ConnectionError: refused",
    ]
    assert Envelope.from_dict(after.to_dict()) == after


def test_the_first_attempt_has_no_history():
    policy = Policy()
    before = replay_state(policy, "job-7", 1, 5.0)
    assert (before.attempt, before.failures, before.epoch) == (1, (), 5.0)
    seeded = replay_state(policy.replace(seed=11), "job-7", 1, 5.0)
    assert seeded == before._replace(seed=11)


def test_a_hint_of_zero_uses_the_schedule():
    policy = Policy(schedule=[2.0] * 3, hint=attribute("wait"))
    error = ConnectionError("busy")
    error.wait = 0
    failures = [Failure(number, error, None, 0.0, 0.1, None) for number in (1, 2)]
    delays = [
        policy.decide(replay_state(policy, "job-7", failure.attempt), failure).delay
        for failure in failures
    ]
    assert delays == [2.0, 2.0]
