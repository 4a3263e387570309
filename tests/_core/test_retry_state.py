"""RetryState: the history of a call while it runs, and afterwards."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from retrykit import (
    Failure,
    Policy,
    RetryState,
    StopReason,
    current_state,
    retry,
    state_of,
)
from retrykit._core.call_record import Terms

POLICY = Policy(schedule=[1, 2, 4], max_elapsed=60, name="fetch", seed=7)


def failure(attempt, delay=1.0):
    return Failure(attempt, OSError(attempt), None, 0.0, 0.0, delay)


def test_has_the_progress_of_the_call(backend, clock):
    seen = []

    def fetch():
        clock.advance(0.5)
        state = current_state()
        limits = state.elapsed, state.remaining
        seen.append((state.attempt, state.attempt_started, *limits, state.total_delay))
        if state.attempt < 3:
            raise OSError

    state = backend.run(POLICY, fetch).state
    assert seen == [
        (1, 0.0, 0.5, 59.5, 0.0),
        (2, 1.5, 2.0, 58.0, 1.0),
        (3, 4.0, 4.5, 55.5, 3.0),
    ]
    clock.advance(9)
    assert (state.status, state.elapsed, state.remaining) == ("succeeded", 4.5, 55.5)
    assert (state.name, state.seed, state.total_delay) == ("fetch", 7, 3.0)


def test_a_call_is_running_during_an_attempt(backend):
    def fetch():
        state = current_state()
        return state.status, state.stop_reason, state.next_delay

    assert backend(POLICY)(fetch)() == ("running", None, None)


def test_records_every_failure_with_its_times(backend, clock, flaky):
    errors = [OSError("one"), ValueError("two")]
    outcomes = flaky(*errors, "busy", "value")

    def fetch():
        clock.advance(len(outcomes.calls) + 1)
        return outcomes()

    policy = POLICY.replace(on_result=lambda result: result == "busy")
    state = backend.run(policy, fetch).state
    assert state.failures == (
        Failure(1, errors[0], None, started=0.0, duration=1.0, delay=1.0),
        Failure(2, errors[1], None, started=2.0, duration=2.0, delay=2.0),
        Failure(3, None, "busy", started=6.0, duration=3.0, delay=4.0),
    )
    assert state.errors == tuple(errors)


class SkippingLoop(asyncio.SelectorEventLoop):
    """An event loop whose time can be advanced."""

    skipped = 0.0

    def time(self):
        return super().time() + self.skipped


@pytest.mark.needs("threads")
def test_a_state_created_in_a_worker_thread_measures_time():
    async def main():
        @retry(schedule=[0] * 9, max_attempts=None, max_elapsed=25)
        async def fetch(*, fail):
            if fail:
                await asyncio.to_thread(current_state)
                asyncio.get_running_loop().skipped += 10
                raise OSError

        # Until its first success, the driver itself creates the state.
        await fetch(fail=False)
        with pytest.raises(OSError) as caught:
            await fetch(fail=True)
        return state_of(caught.value)

    with asyncio.Runner(loop_factory=SkippingLoop) as runner:
        state = runner.run(main())
    assert [failure.duration // 1 for failure in state.failures] == [10, 10, 10]
    assert state.stop_reason is StopReason.ELAPSED


def test_remaining_is_none_without_a_limit():
    assert RetryState("fetch", seed=7, epoch=0.0).remaining is None


def test_remaining_is_zero_after_the_limit():
    state = RetryState("fetch", seed=7, epoch=0.0, max_elapsed=5.0, elapsed_at_end=9.0)
    assert state.remaining == 0.0


def test_started_at_is_in_utc():
    state = RetryState("fetch", seed=7, epoch=86_400.0)
    assert state.started_at == datetime(1970, 1, 2, tzinfo=UTC)


def test_started_at_is_the_current_time():
    before = datetime.now(UTC)
    started = Policy().call(lambda: current_state().started_at)
    # A float of seconds since 1970 is not exact to the microsecond.
    rounding = timedelta(milliseconds=1)
    assert before - rounding <= started <= datetime.now(UTC) + rounding


GAVE_UP = "gave up after 2 attempts in 1 min 30 s"


@pytest.mark.parametrize(
    ("reason", "status", "text"),
    [
        (None, "running", "is running: 2 attempts in 1 min 30 s"),
        ("succeeded", "succeeded", "succeeded after 2 attempts in 1 min 30 s"),
        ("cancelled", "dead", "was cancelled after 2 attempts in 1 min 30 s"),
        ("attempts", "dead", f"{GAVE_UP}: max attempts reached"),
        ("elapsed", "dead", f"{GAVE_UP}: no time is left for another attempt"),
        ("schedule_ended", "dead", f"{GAVE_UP}: the schedule has ended"),
        ("not_retryable", "dead", f"{GAVE_UP}: the error is not retryable"),
        ("gave_up", "dead", f"{GAVE_UP}: ended by give_up_on, GiveUp or a hint"),
    ],
)
def test_describes_how_the_call_went(reason, status, text):
    state = RetryState("fetch", seed=7, epoch=0.0, attempt=2, elapsed_at_end=90.0)
    if reason is not None:
        state._record.end(StopReason(reason))
    assert state.status == status
    assert state.describe() == text
    assert repr(state) == f"<RetryState of fetch: {text}>"


def test_describes_one_attempt_in_the_singular():
    assert (
        RetryState("f", seed=7, epoch=0.0).describe() == "is running: 1 attempt in 0 s"
    )


@pytest.mark.parametrize(
    ("keep", "attempts"),
    [(2, [1, 9]), (5, [1, 2, 7, 8, 9]), (8, [1, 2, 3, 4, 6, 7, 8, 9])],
)
def test_keeps_the_first_and_the_last_failures(keep, attempts):
    state = RetryState("fetch", seed=7, epoch=0.0, max_failures=keep)
    for attempt in range(1, 10):
        state._record.add_failure(failure(attempt))
    assert [each.attempt for each in state.failures] == attempts
    assert state.dropped_failures == 9 - keep


def test_keeps_all_failures_up_to_max_failures():
    state = RetryState("fetch", seed=7, epoch=0.0, max_failures=3)
    for attempt in range(1, 4):
        state._record.add_failure(failure(attempt))
    assert (len(state.failures), state.dropped_failures) == (3, 0)


def test_a_call_keeps_max_failures_failures(backend, clock, flaky):
    errors = [OSError(n) for n in range(8)]
    policy = POLICY.replace(schedule=[1] * 9, max_attempts=None, max_failures=4)
    state = backend.run(policy, flaky(*errors)).state
    assert [each.attempt for each in state.failures] == [1, 2, 7, 8]
    assert (state.dropped_failures, state.attempt, state.total_delay) == (
        4,
        9,
        sum(clock.sleeps),
    )


def test_a_smaller_max_failures_keeps_the_first_and_the_last():
    state = RetryState("fetch", seed=7, epoch=0.0, max_failures=50)
    for attempt in range(1, 51):
        state._record.add_failure(Failure(attempt, OSError(), None, 0.0, 0.0, 1.0))
    state._record.terms = Terms("fetch", max_failures=4)
    state._record.add_failure(Failure(51, OSError(), None, 0.0, 0.0, 1.0))
    assert [failure.attempt for failure in state.failures] == [1, 2, 50, 51]
    assert state.dropped_failures == 47


class EqualError(OSError):
    def __eq__(self, other):
        return self.errno == other.errno

    __hash__ = OSError.__hash__


def test_errors_that_compare_equal_are_distinct():
    raised = []

    def fail():
        raised.append(EqualError(1, "busy"))
        raise raised[-1]

    with pytest.raises(EqualError) as caught:
        Policy(schedule=[0, 0]).call(fail)
    errors = state_of(caught.value).errors
    assert [id(error) for error in errors] == [id(error) for error in raised]
