"""Limits of calls that nothing else watches, which take the quick way of a driver."""

import asyncio
import logging
from threading import Thread

import pytest

from retrykit import (
    CircuitOpenError,
    Policy,
    RefusedError,
    StopReason,
    current_state,
    retry,
    state_of,
)
from retrykit._core.admission import at_host
from retrykit.budgets import TokenBucket
from retrykit.limits import CircuitBreaker, Registry
from tests._support.scripted_limit import FORMS, NotedLease, Script, failing, refusal


@pytest.fixture(params=FORMS, ids=lambda form: form.__name__)
def form(request):
    return request.param


@pytest.fixture(autouse=True, params=["logged", "quiet"])
def _logs(request):
    logger = logging.getLogger("retrykit")
    logger.disabled = request.param == "quiet"
    yield
    logger.disabled = False


def test_a_success_is_reported(form):
    limit = Script()
    policy = Policy(admission=[limit])
    for _ in range(3):
        assert form(policy, int) == 0
    assert limit.notes == ["asked", "succeeded"] * 3


def test_each_failure_is_reported(form):
    limit = Script()
    fetch, calls = failing(3)
    assert form(Policy(schedule=[0] * 5, admission=[limit]), fetch) == "fetched"
    assert len(calls) == 4
    failed = ["asked", "failed OSError"]
    assert limit.notes == [*failed, *failed, *failed, "asked", "succeeded"]


def test_a_breaker_ends_the_call_that_opens_it(form):
    breaker = CircuitBreaker(consecutive_failures=3, name="api")
    fetch, calls = failing(9)
    policy = Policy(schedule=[0] * 5, admission=[breaker])
    with pytest.raises(OSError, match="3") as caught:
        form(policy, fetch)
    assert len(calls) == 3
    assert state_of(caught.value).stop_reason is StopReason.REFUSED
    with pytest.raises(CircuitOpenError):
        form(policy, fetch)
    assert len(calls) == 3
    assert breaker.metrics.total_refused == 1


def test_one_function_is_called_again_and_again():
    breaker = CircuitBreaker(window=10, minimum_calls=10, failure_rate=0.5)
    results = iter([1, OSError(), 2, OSError(), 3, 4])

    @retry(schedule=[0, 0], admission=[breaker])
    def fetch():
        result = next(results)
        if isinstance(result, Exception):
            raise result
        return result

    assert [fetch() for _ in range(4)] == [1, 2, 3, 4]
    assert breaker.metrics[:2] == (6, 2)


def test_a_refusal_is_asked_for_once(form):
    limit, other = Script(refusal(5.0)), Script()
    with pytest.raises(RefusedError):
        form(Policy(admission=[other, limit]), int)
    assert limit.notes == ["asked"]
    assert other.notes == ["asked", "ignored"]


def test_a_lease_that_begins_later_is_asked_for_once(form):
    limit = Script(0.001)
    assert form(Policy(admission=[limit]), int) == 0
    assert limit.notes == ["asked", "succeeded"]


def test_an_error_that_is_not_retried_is_ignored(form):
    limit = Script()
    with pytest.raises(KeyError):
        form(Policy(on=OSError, admission=[limit]), lambda: {}["a"])
    assert limit.notes == ["asked", "ignored"]


def test_what_ends_the_program_is_ignored(form):
    limit = Script()

    class StopNow(BaseException):
        pass

    def fetch():
        raise StopNow

    with pytest.raises(StopNow):
        form(Policy(admission=[limit]), fetch)
    assert limit.notes == ["asked", "ignored"]


def test_a_call_that_was_looked_at_reports_too(form):
    limit = Script()

    def fetch():
        return current_state().attempt

    assert form(Policy(admission=[limit]), fetch) == 1
    assert limit.notes == ["asked", "succeeded"]


def test_results_that_are_rejected_are_failures(form):
    limit = Script()
    results = iter([1, 9])
    policy = Policy(schedule=[0], on_result=lambda x: x < 9, admission=[limit])
    if form.__name__.endswith("block"):
        pytest.skip("a block has no result")
    assert form(policy, lambda: next(results)) == 9
    assert limit.notes == ["asked", "failed NoneType", "asked", "succeeded"]


def test_a_budget_hears_of_successes_too(form):
    budget, limit = TokenBucket(), Script()
    fetch, _ = failing(1)
    policy = Policy(schedule=[0], admission=[limit], budget=budget)
    assert form(policy, fetch) == "fetched"
    assert budget.balance == 500
    assert limit.notes == ["asked", "failed OSError", "asked", "succeeded"]


def test_a_fault_of_a_lease_keeps_no_result():
    class Faulty(NotedLease):
        def succeeded(self):
            raise ZeroDivisionError

    class FaultyLimit(Script):
        def acquire(self):
            return Faulty(self, 0.0)

    other = Script()
    assert Policy(admission=[other, FaultyLimit()]).call(int) == 0
    assert other.notes == ["asked", "succeeded"]


def test_cancellation_gives_leases_back():
    limit = Script()

    async def main():
        task = asyncio.create_task(Policy(admission=[limit]).acall(asyncio.sleep, 99))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert limit.notes == ["asked", "ignored"]


@pytest.mark.needs("threads")
def test_threads_share_a_breaker():
    breaker = CircuitBreaker(window=10_000, minimum_calls=10_000)
    policy = Policy(schedule=[0] * 9, admission=[breaker])

    def work():
        for _ in range(50):
            fetch, _ = failing(1)
            policy.call(fetch)

    threads = [Thread(target=work) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert breaker.metrics[:2] == (800, 400)


def test_results_that_are_accepted_are_reported(form):
    if form.__name__.endswith("block"):
        pytest.skip("a block has no result")
    limit = Script()
    policy = Policy(on_result=lambda x: x < 9, admission=[limit])
    assert form(policy, lambda: 9) == 9
    assert limit.notes == ["asked", "succeeded"]


def test_a_breaker_with_a_predicate_of_results_judges_them():
    breaker = CircuitBreaker(on_result=lambda result: result == 503)
    policy = Policy(admission=[breaker])
    results = [policy.call(lambda each=each: each) for each in (200, 503)]
    assert results == [200, 503]
    assert breaker.metrics[:2] == (2, 1)
    # A result that the policy rejects is none for the breaker.
    policy = Policy(schedule=[0], on_result=lambda x: x < 9, admission=[breaker])
    left = iter([1, 9])
    assert policy.call(lambda: next(left)) == 9
    assert breaker.metrics.failures == 1


def test_a_client_has_limits_of_its_host():
    hosts = Registry(CircuitBreaker)
    other = CircuitBreaker()
    policy = Policy(admission=[other, hosts])
    assert at_host(policy, "a").admission == (other, hosts["a"])
    assert at_host(policy, None).admission == (other,)
    bare = Policy(admission=[other])
    assert at_host(bare, "a") is bare
