"""Limits in the `admission` of a policy: asked before attempts, told of outcomes."""

import asyncio
import threading

import pytest

from retrykit import (
    CircuitOpenError,
    ConfigError,
    GiveUp,
    Policy,
    RefusedError,
    RetryError,
    RetryState,
    StopReason,
    aretry,
    aretrying,
    current_state,
    last_result,
    observe,
    resume,
    retry,
    retrying,
    state_of,
)
from retrykit.budgets import RatioBudget, TokenBucket
from retrykit.limits import CircuitBreaker
from retrykit.testing import limit_retries, virtual_time
from tests._support.scripted_limit import (
    FORMS,
    NotedLease,
    Script,
    failing,
    in_block,
    in_coroutine,
    in_function,
    refusal,
)


@pytest.fixture(params=FORMS, ids=lambda form: form.__name__)
def form(request):
    return request.param


@pytest.fixture(autouse=True)
def clock():
    with virtual_time() as clock:
        yield clock


def test_limits_are_asked_before_each_attempt_in_order(form):
    notes = []
    one, two = Script(name="one", notes=notes), Script(name="two", notes=notes)
    fetch, _ = failing(1)
    policy = Policy(schedule=[0], admission=[one, two])
    assert form(policy, fetch) == "fetched"
    assert notes == [
        *("one asked", "two asked", "two failed OSError", "one failed OSError"),
        *("one asked", "two asked", "two succeeded", "one succeeded"),
    ]


def test_a_refusal_before_the_first_attempt_raises_its_error(form):
    limit = Script(refusal(5.0), name="db")
    fetch, calls = failing(0)
    with pytest.raises(RefusedError) as caught:
        form(Policy(admission=[limit]), fetch)
    error, state = caught.value, state_of(caught.value)
    assert str(error) == "limit 'db' is busy; try again in 5 s"
    assert not hasattr(error, "__notes__")
    assert calls == []
    assert (state.attempt, state.failures) == (0, ())
    assert (state.stop_reason, state.retry_in) == (StopReason.REFUSED, 5.0)
    assert state.describe() == f"gave up before its first attempt: {error}"
    again = RetryState.from_dict(state.to_dict())
    assert (again, again.attempt, again.retry_in) == (state, 0, 5.0)


def test_a_refusal_after_a_delay_raises_the_last_error(form):
    limit = Script(0.0, refusal(5.0), name="db")
    fetch, calls = failing(9)
    with pytest.raises(OSError, match="1") as caught:
        form(Policy(schedule=[1], admission=[limit]), fetch)
    state = state_of(caught.value)
    assert len(calls) == state.attempt == 1
    assert caught.value.__notes__ == [
        "retrykit: gave up after 1 attempt in 1 s: limit 'db' is busy; try again in 5 s"
    ]
    assert state.stop_reason is StopReason.REFUSED


def test_raises_says_how_to_raise_what_failed_before(form):
    limit = Script(0.0, refusal())
    policy = Policy(schedule=[1], raises="retry_error", admission=[limit])
    with pytest.raises(RetryError, match="limit is busy"):
        form(policy, failing(9)[0])
    # Nothing failed here.
    limit = Script(refusal())
    with pytest.raises(RefusedError):
        form(policy.replace(admission=[limit], raises="group"), failing(9)[0])


def test_a_rejected_result_that_may_not_be_repeated_raises_a_retry_error():
    limit = Script(0.0, refusal())
    policy = Policy(schedule=[1], on_result=lambda x: x < 9, admission=[limit])
    with pytest.raises(RetryError, match="limit is busy; last failure: a rejected"):
        policy.call(int, "7")
    assert limit.notes == ["asked", "failed NoneType", "asked"]


def test_leases_of_other_limits_are_given_back(form):
    notes = []
    one = Script(name="one", notes=notes)
    two = Script(refusal(), name="two", notes=notes)
    with pytest.raises(RefusedError):
        form(Policy(admission=[one, two]), failing(0)[0])
    assert notes == ["one asked", "two asked", "one ignored"]


def test_a_lease_that_begins_later_is_waited_for(form, clock):
    limit = Script(2.0, 3.0)
    fetch, _ = failing(1)
    before = clock.now()
    assert form(Policy(schedule=[1], admission=[limit]), fetch) == "fetched"
    assert clock.now() - before == pytest.approx(6.0)


def test_an_attempt_begins_when_the_limit_allows_it():
    states = []
    policy = Policy(schedule=[1], admission=[Script(2.0, 3.0)])

    def fetch():
        states.append(current_state().attempt_started)
        if len(states) == 1:
            raise OSError

    policy.call(fetch)
    assert states == pytest.approx([2.0, 6.0])


def test_a_lease_that_begins_too_late_is_given_back(form, clock):
    limit = Script(7.0)
    before = clock.now()
    with pytest.raises(RefusedError, match="busy for longer than the call may wait"):
        form(Policy(max_elapsed=5, admission=[limit]), failing(0)[0])
    assert clock.now() == before
    assert limit.notes == ["asked", "ignored"]


def test_a_call_may_wait_for_its_limits(form, clock):
    limit = Script(refusal(4.0), refusal(3.0), 0.0)
    before = clock.now()
    policy = Policy(admission=[limit], on_refused="wait")
    assert form(policy, failing(0)[0]) == "fetched"
    assert clock.now() - before == pytest.approx(7.0)


def test_a_limit_that_does_not_know_is_asked_again_and_again(form, clock):
    limit = Script(refusal(), refusal(), refusal(), 0.0)
    before = clock.now()
    policy = Policy(admission=[limit], on_refused="wait")
    assert form(policy, failing(0)[0]) == "fetched"
    assert clock.now() - before == pytest.approx(0.75)


def test_a_call_waits_no_longer_than_its_time_limit(form, clock):
    limit = Script(refusal(4.0), refusal(3.0))
    before = clock.now()
    policy = Policy(admission=[limit], on_refused="wait", max_elapsed=6)
    with pytest.raises(RefusedError):
        form(policy, failing(0)[0])
    assert clock.now() - before == pytest.approx(4.0)


def test_a_nested_call_waits_no_longer_than_the_outer_one():
    inner = Policy(admission=[Script(9.0)], max_elapsed=60)
    with pytest.raises(RefusedError):
        Policy(max_elapsed=5).call(inner.call, int)


def test_a_refusal_of_a_nested_call_is_not_retried():
    inner = Policy(admission=[Script(default=refusal())], name="inner")
    outer = Policy(schedule=[0, 0], name="outer")
    with pytest.raises(RefusedError) as caught:
        outer.call(inner.call, int)
    assert state_of(caught.value).stop_reason is StopReason.NESTED


def test_overshoot_and_joined_limits_leave_the_wait_unlimited():
    policy = Policy(max_elapsed=5, deadline="overshoot", admission=[Script(9.0)])
    assert policy.call(int) == 0
    policy = Policy(max_elapsed=5, max_attempts=3, limits="all")
    assert policy.replace(admission=[Script(9.0)]).call(int) == 0


class Outcomes:
    """What a policy says of errors and results."""

    POLICY = Policy(schedule=[0], on=OSError, give_up_on=FileNotFoundError)


@pytest.mark.parametrize(
    ("error", "note"),
    [
        (OSError(), "failed OSError"),
        (FileNotFoundError(), "ignored"),
        (KeyError(), "ignored"),
        (GiveUp(OSError()), "ignored"),
        (CircuitOpenError(None, "open", 1.0), "ignored"),
    ],
)
def test_a_failure_is_what_the_policy_may_retry(form, error, note):
    limit = Script()
    policy = Outcomes.POLICY.replace(max_attempts=1, admission=[limit])

    def fetch():
        raise error

    with pytest.raises(Exception):  # noqa: B017  any of them
        form(policy, fetch)
    assert limit.notes == ["asked", note]


def test_a_nested_call_that_gave_up_is_a_failure():
    limit = Script()
    inner = Policy(schedule=[0], name="inner")
    with pytest.raises(ValueError, match="seven"):
        Policy(admission=[limit], name="outer").call(inner.call, int, "seven")
    assert limit.notes == ["asked", "failed ValueError"]


def test_a_breaker_with_conditions_judges_for_itself():
    breaker = CircuitBreaker(on=KeyError, on_result=lambda x: x == 0)
    policy = Policy(schedule=[0], admission=[breaker])
    for error in (KeyError, OSError):
        fetch, _ = failing(1, error)
        policy.call(fetch)
    assert breaker.metrics[:2] == (3, 1)
    assert policy.call(int) == 0
    assert breaker.metrics[:2] == (4, 2)


def test_policies_that_judge_differently_cannot_share_a_breaker():
    breaker, fetch = CircuitBreaker(name="api"), failing(0)[0]
    retry(on=OSError, admission=[breaker])(fetch)
    retry(on=OSError, admission=[breaker], max_attempts=9)(fetch)
    with pytest.raises(ConfigError, match="with the same on, here OSError, not KeyE"):
        retry(on=KeyError, admission=[breaker])(fetch)
    for block in (retrying, aretrying):
        with pytest.raises(ConfigError, match="with the same on"):
            block(on=KeyError, admission=[breaker])
    with pytest.raises(ConfigError, match="with the same on"):

        @aretry(on=KeyError, admission=[breaker])
        async def fetch_later(): ...

    own = CircuitBreaker(on=OSError)
    retry(on=OSError, admission=[own])(fetch)
    retry(on=KeyError, admission=[own])(fetch)


def test_a_call_whose_own_failures_open_the_breaker_does_not_wait(form, clock):
    breaker = CircuitBreaker(consecutive_failures=2, open_for="30s", name="api")
    fetch, calls = failing(9)
    before = clock.now()
    budget = TokenBucket()
    policy = Policy(schedule=[1, 1, 1], admission=[breaker], budget=budget)
    with pytest.raises(OSError, match="2") as caught:
        form(policy, fetch)
    assert len(calls) == 2
    assert clock.now() - before == 1.0
    assert budget.balance == 495
    state = state_of(caught.value)
    assert (state.stop_reason, state.retry_in) == (StopReason.REFUSED, 30.0)
    assert state.failures[-1].delay is None
    assert "circuit breaker 'api' is open, as 2 calls in a row" in state.describe()


def test_a_delay_beyond_the_opening_is_waited_for(form):
    breaker = CircuitBreaker(consecutive_failures=1, open_for="30s")
    fetch, calls = failing(1)
    assert form(Policy(schedule=[31], admission=[breaker]), fetch) == "fetched"
    assert len(calls) == 2
    assert breaker.state == "closed"


def test_a_delay_is_extended_until_the_breaker_allows_it(form, clock):
    breaker = CircuitBreaker(consecutive_failures=1, open_for="30s")
    fetch, _ = failing(1)
    before, delays = clock.now(), []
    policy = Policy(schedule=[1], admission=[breaker], on_refused="wait")
    with observe(lambda event: delays.append(getattr(event, "delay", None))):
        assert form(policy, fetch) == "fetched"
    assert clock.now() - before == 30.0
    assert 30.0 in delays


def test_an_isolated_breaker_refuses_at_once(form):
    breaker = CircuitBreaker(name="api")

    def fetch():
        breaker.isolate()
        raise OSError

    policy = Policy(schedule=[1, 1], admission=[breaker])
    with pytest.raises(OSError, match="isolated") as caught:
        form(policy, fetch)
    assert "isolated until close()" in state_of(caught.value).describe()
    assert breaker.refusal_after(1e9) is not None


@pytest.mark.parametrize("budget", [TokenBucket(), RatioBudget()])
def test_a_refused_retry_costs_no_budget(form, budget):
    before = budget.balance
    fetch, _ = failing(9)
    policy = Policy(schedule=[0], admission=[Script(0.0, refusal())], budget=budget)
    with pytest.raises(OSError, match="1"):
        form(policy, fetch)
    assert budget.balance >= before


def test_the_fallback_is_used_for_a_refusal():
    policy = Policy(admission=[Script(default=refusal())], fallback="stale")
    assert policy.call(int) == "stale"
    assert in_coroutine(policy, int) == "stale"
    with pytest.raises(RefusedError):
        policy.replace(fallback=last_result).call(int)


def test_an_event_ends_the_wait_for_a_limit(form):
    class Set(threading.Event):
        """An event that is set once somebody waits."""

        def is_set(self):
            return True

    if form not in {in_function, in_block}:
        pytest.skip("an event of threads")
    for limit in (Script(5.0), Script(refusal(5.0))):
        policy = Policy(admission=[limit], on_refused="wait", stop_event=Set())
        with pytest.raises(RetryError, match="before its first attempt: stop_event"):
            form(policy, failing(0)[0])
    assert limit.notes == ["asked"]


def test_an_event_of_a_loop_ends_the_wait_for_a_limit():
    async def call():
        event = asyncio.Event()
        event.set()
        limit = Script(5.0)
        policy = Policy(admission=[limit], stop_event=event, fallback="stopped")
        assert await policy.acall(asyncio.sleep, 0) == "stopped"
        assert limit.notes == ["asked", "ignored"]

    asyncio.run(call())


def test_a_fault_of_a_limit_is_raised(form):
    limit, other = Script(ZeroDivisionError()), Script()
    with pytest.raises(ZeroDivisionError):
        form(Policy(admission=[other, limit]), failing(0)[0])
    assert other.notes == ["asked", "ignored"]


class FaultyLease(NotedLease):
    def succeeded(self):
        raise ZeroDivisionError

    def failed(self, error=None):
        raise ZeroDivisionError

    ignored = succeeded


class Faulty(Script):
    def acquire(self):
        return FaultyLease(self, 0.0)

    def refusal_after(self, delay):
        raise ZeroDivisionError


def test_a_fault_of_a_lease_is_logged(form, caplog):
    fetch, _ = failing(1)
    assert form(Policy(schedule=[0], admission=[Faulty()]), fetch) == "fetched"
    for text in ("on an error", "on a result", "on a delay"):
        assert f"a limit failed {text}" in caplog.text
    with pytest.raises(RefusedError):
        form(Policy(admission=[Faulty(), Script(refusal())]), fetch)
    assert "a limit failed on a lease" in caplog.text


@pytest.mark.parametrize("judges", [False, True])
def test_a_fault_of_a_lease_keeps_no_result_from_another_limit(form, caplog, judges):
    first, last = Script(name="first"), Script(name="last")
    first.judges_results = judges
    policy = Policy(admission=[first, Faulty(), Faulty(), last])
    assert form(policy, failing(0)[0]) == "fetched"
    assert first.notes == ["first asked", "first succeeded"]
    assert last.notes == ["last asked", "last succeeded"]
    assert caplog.text.count("a limit failed on a result") == 2


def test_what_ends_the_program_says_nothing(form):
    limit = Script()

    class StopNow(BaseException):
        pass

    def fetch():
        raise StopNow

    with pytest.raises(StopNow):
        form(Policy(admission=[limit]), fetch)
    assert limit.notes == ["asked", "ignored"]


@pytest.mark.parametrize("moment", ["attempt", "delay", "limit"])
def test_cancellation_leaves_no_lease(moment, clock):
    limit = Script(5.0 if moment == "limit" else 0.0)

    async def fetch():
        if moment == "attempt":
            await clock.asleep(9)
        raise OSError

    async def call():
        policy = Policy(schedule=[9], admission=[limit])
        task = asyncio.create_task(policy.acall(fetch))
        await clock.asleep(3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(call())
    last = "failed OSError" if moment == "delay" else "ignored"
    assert limit.notes == ["asked", last]


def test_events_tell_of_attempts_that_are_made(form):
    kinds = []
    limit = Script(0.0, refusal(1.0), 0.0)
    fetch, _ = failing(1)
    policy = Policy(
        schedule=[1],
        admission=[limit],
        on_refused="wait",
        observers=[lambda event: kinds.append(event.kind)],
    )
    form(policy, fetch)
    assert kinds == [
        *("attempt_started", "attempt_failed", "retry_scheduled"),
        *("attempt_started", "succeeded"),
    ]


def test_a_refused_call_notifies_of_its_end(form):
    events = []
    policy = Policy(admission=[Script(refusal(1.0))], observers=[events.append])
    with pytest.raises(RefusedError):
        form(policy, failing(0)[0])
    [event] = events
    assert (event.kind, event.state.stop_reason) == ("gave_up", StopReason.REFUSED)


def test_async_observers_are_awaited_for_a_refusal():
    kinds = []

    async def note(event):
        await asyncio.sleep(0)
        kinds.append(event.kind)

    policy = Policy(admission=[Script(refusal(1.0))], observers=[note])
    with pytest.raises(RefusedError):
        in_coroutine(policy, int)
    assert kinds == ["gave_up"]


def test_a_call_is_resumed_under_its_limits():
    fetch, _ = failing(1)
    limit = Script()
    policy = Policy(schedule=[5], admission=[limit])
    with pytest.raises(OSError, match="1") as caught:
        policy.replace(max_attempts=1).call(fetch)
    state = state_of(caught.value)
    assert resume(fetch, state, policy)() == "fetched"
    refused = Policy(admission=[Script(refusal())])
    with pytest.raises(RefusedError) as caught:
        refused.call(fetch)
    assert resume(fetch, state_of(caught.value), policy)() == "fetched"


def test_without_retries_limits_are_asked_all_the_same():
    limit = Script(0.0, refusal())
    fetch = retry(schedule=[0], admission=[limit])(failing(1)[0])
    with limit_retries(9):
        with pytest.raises(OSError, match="1"):
            fetch()
        assert limit.notes == ["asked", "failed OSError", "asked"]
