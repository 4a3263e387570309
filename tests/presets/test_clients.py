"""Presets of clients against the figures of their specifications."""

import math
from itertools import islice, pairwise

import pytest
from hypothesis import given, strategies as st

from retrykit import (
    Failure,
    RetryError,
    RetryState,
    StopReason,
    hints,
    presets,
    schedules as s,
    state_of,
)
from retrykit._throttling import throttling
from retrykit.analysis.lint import check
from retrykit.config.grpc_service_config import StatusCodes, from_service_config
from retrykit.testing import ScriptedFunction, virtual_time
from retrykit.testing.strategies import seeds
from tests._support.exhausted_calls import exhaust
from tests._support.random_sources import FixedRandom

ALMOST_ONE = math.nextafter(1.0, 0.0)
chances = st.floats(0, 1, exclude_max=True)
versions = pytest.mark.parametrize("version", ["2.0", "2.1"])


def draws(policy, retry, chance):
    return policy.schedule.delay(retry, None, FixedRandom(chance))


# The longest delays, as in the unit tests of botocore for a random number of 1.
AWS = {
    "2.0": [1, 2, 4, 8, 16, 20, 20],
    "2.1": [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 20, 20],
}


@pytest.mark.parametrize(("version", "longest"), AWS.items(), ids=AWS)
def test_aws_waits_at_most_as_long_as_its_client(version, longest):
    policy = presets.aws_standard(version=version)
    bounds = [policy.schedule.bounds(retry) for retry in range(1, len(longest) + 1)]
    assert bounds == [(0, each) for each in longest]


@given(st.integers(1, 60), chances)
def test_aws_2_0_caps_the_draw_and_2_1_the_range(retry, chance):
    """``min(b * 2 ** i, 20)``, and ``b * min(0.05 * 2 ** i, 20)``."""
    old = min(chance * 2 ** (retry - 1), 20)
    new = chance * min(0.05 * 2 ** (retry - 1), 20)
    found = [draws(presets.aws_standard(version=v), retry, chance) for v in AWS]
    assert found == pytest.approx([old, new])


@versions
def test_aws_makes_three_attempts(backend, clock, version):
    calls, state = exhaust(backend, presets.aws_standard(version=version))
    assert calls == len(clock.sleeps) + 1 == 3
    assert state.stop_reason is StopReason.ATTEMPTS


def test_aws_defaults_to_the_version_of_2026():
    newest = presets.aws_standard(version="2.1")
    assert repr(presets.aws_standard()) == repr(newest)
    assert presets.aws_standard(max_attempts=4).max_attempts == 4


@versions
def test_aws_adaptive_retries_as_the_standard_mode_does(version):
    adaptive = presets.aws_adaptive(version=version, max_attempts=5)
    standard = presets.aws_standard(version=version, max_attempts=5)
    assert repr(adaptive.replace(admission=())) == repr(standard)
    [limit] = adaptive.admission
    assert repr(limit) == "AdaptiveRateLimit()"


def test_aws_adaptive_shares_a_limit_in_a_scope():
    make = presets.aws_adaptive
    assert make(scope="key:a").admission == make(scope="key:a").admission
    assert make().admission != make().admission
    [limit] = make(throttled=TimeoutError).admission
    assert limit.on is TimeoutError


class ClientError(Exception):
    """An error like that of an AWS client."""

    def __init__(self, code="InternalError", headers=()):
        super().__init__(code)
        metadata = {"HTTPHeaders": dict(headers)}
        self.response = {"Error": {"Code": code}, "ResponseMetadata": metadata}


def aws(**settings):
    """Return a policy with the longest delays of AWS."""
    return presets.aws_standard(**settings).replace(on=ClientError, seed=5)


def sleeps(policy, *errors):
    with virtual_time() as clock:
        policy.run(ScriptedFunction([*errors, "done", ...]))
    return clock.sleeps


@versions
def test_aws_pays_for_retries_and_a_success_returns_the_last_cost(version):
    """500 tokens; 5 or 14 for a retry, and one for a success without any."""
    policy, cost = aws(version=version), {"2.0": 5, "2.1": 14}[version]
    sleeps(policy, ClientError(), ClientError())
    assert policy.budget.balance == 500 - cost
    sleeps(policy, ClientError(), ClientError(), ClientError())
    assert policy.budget.balance == 500 - 3 * cost
    sleeps(policy)
    assert policy.budget.balance == 500 - 3 * cost + 1


@pytest.mark.thorough
def test_aws_of_2020_costs_ten_for_a_timeout():
    policy = aws(version="2.0", max_attempts=2).replace(on=Exception)
    policy.run(ScriptedFunction([TimeoutError(), TimeoutError()]))
    assert policy.budget.balance == 490


@pytest.mark.parametrize("settings", [{}, {"throttled": throttling}])
def test_aws_of_2026_costs_no_more_for_a_timeout(settings):
    policy = aws(max_attempts=2, **settings).replace(on=Exception)
    policy.run(ScriptedFunction([TimeoutError(), TimeoutError()]))
    assert policy.budget.balance == 500 - 14


def test_aws_of_2026_waits_longer_where_it_is_throttled_and_pays_less():
    policy = aws(throttled=throttling, max_attempts=9)
    for retry in range(1, 9):
        state = RetryState("", 5, 0.0, attempt=retry, rule_counts=(retry - 1,))
        slow = failed_state(policy, state, ClientError("ThrottlingException"))
        fast = failed_state(policy, state._replace(rule_counts=()), ClientError())
        assert slow.delay == pytest.approx(min(20 * fast.delay, slow.delay))
        low, high = policy.rules[0].schedule.bounds(retry)
        assert (low, high) == (0, min(2 ** (retry - 1), 20))
        assert low <= slow.delay <= high
    assert policy.budget.withdraw(ClientError("SlowDown")) == 5
    assert policy.budget.withdraw(ClientError("InternalError")) == 14
    assert not throttling(ConnectionError())


def failed_state(policy, state, error):
    failure = Failure(state.attempt, error, None, 0.0, 0.0, None)
    return policy.decide(state, failure)


@pytest.mark.parametrize(
    ("retry_after", "waited"), [("1500", 1.5), ("5000", 5.0), ("60000", 5.0)], ids=str
)
def test_aws_obeys_retry_after_up_to_five_seconds(retry_after, waited):
    error = ClientError(headers={"x-amz-retry-after": retry_after})
    assert sleeps(aws(), error) == [waited]
    assert sleeps(aws(), ClientError(headers={"x-amz-retry-after": "soon"})) != [waited]
    assert presets.aws_standard(version="2.0").hint is None


def test_finagle_retries_a_fifth_of_the_requests_and_ten_a_second():
    budget = presets.finagle().budget
    assert repr(budget) == "RatioBudget(reserve=10.0)"
    assert (budget.settings["ratio"], budget.settings["reserve"]) == (0.2, 10)
    with virtual_time():
        assert budget.balance == 10 * 10
        for _ in range(50):
            budget.deposit(None)
        assert budget.balance == 10 * 10 + 10


# The example of gRFC A6.
A6 = {
    "maxAttempts": 4,
    "initialBackoff": "0.1s",
    "maxBackoff": "1s",
    "backoffMultiplier": 2,
    "retryableStatusCodes": ["UNAVAILABLE"],
}


@pytest.mark.parametrize("jitter", ["proportional", "full"])
def test_grpc_is_the_example_of_its_design(jitter):
    policy = presets.grpc(jitter=jitter).replace(on=StatusCodes(["UNAVAILABLE"]))
    read = from_service_config(A6, jitter=jitter)
    for name in ("schedule", "max_attempts", "max_elapsed", "on", "give_up_on"):
        assert getattr(policy, name) == getattr(read, name)


def test_grpc_has_a_throttle_and_pushback_by_default():
    policy = presets.grpc()
    assert repr(policy.budget) == "Throttle()"
    assert repr(presets.grpc(max_tokens=4, token_ratio=0.5).budget) == (
        "Throttle(max_tokens=4, token_ratio=0.5)"
    )
    assert (policy.hint, policy.hint_cap) == (hints.grpc_pushback(), None)
    assert presets.grpc().budget is not presets.grpc().budget


@given(st.integers(1, 20), chances)
def test_grpc_has_the_jitter_of_2017_and_of_2024(retry, chance):
    """random(0, d), and d * random(0.8, 1.2), where d is capped."""
    d = min(0.1 * 2 ** (retry - 1), 1)
    assert draws(presets.grpc(jitter="full"), retry, chance) == pytest.approx(
        chance * d
    )
    expected = d * (0.8 + 0.4 * chance)
    assert draws(presets.grpc(), retry, chance) == pytest.approx(expected)


def test_grpc_makes_no_more_than_five_attempts(backend, clock):
    calls, _ = exhaust(backend, presets.grpc(max_attempts=9))
    assert calls == len(clock.sleeps) + 1 == 5
    policy = presets.grpc(
        max_attempts=2, initial_backoff="1s", max_backoff="5s", backoff_multiplier=3
    )
    assert policy.schedule == s.exponential(1, factor=3).cap(5).jitter(0.2)
    assert policy.max_attempts == 2


@given(seeds())
def test_finagle_draws_from_5_ms_to_200_ms(seed):
    """Between the start and 3 times the previously selected value, capped."""
    walk = list(islice(presets.finagle().schedule.draw(seed), 50))
    assert walk[0] == 0.005
    for before, delay in pairwise(walk):
        assert 0.005 <= delay <= min(3 * before * (1 + 1e-12), 0.2)


def test_finagle_reaches_both_bounds():
    schedule = presets.finagle().schedule
    assert schedule.delay(2, 0.005, FixedRandom(0.0)) == 0.005
    assert schedule.delay(2, 0.005, FixedRandom(ALMOST_ONE)) == pytest.approx(0.015)
    assert schedule.delay(3, 0.015, FixedRandom(ALMOST_ONE)) == pytest.approx(0.045)
    assert schedule.delay(9, 0.2, FixedRandom(ALMOST_ONE)) == 0.2


def test_finagle_counts_the_first_try():
    """A value of 1 means one attempt and no retries."""
    assert presets.finagle(tries=1).max_attempts == 1
    assert presets.finagle(tries=5).max_attempts == 5


def test_polly_is_the_example_of_its_documentation(backend, clock):
    """A median first retry delay of 1 s, and 5 retries."""
    policy = presets.polly()
    assert policy.schedule == s.polly_interval("1s")
    calls, state = exhaust(backend, policy)
    assert calls == len(clock.sleeps) + 1 == 6
    assert state.stop_reason is StopReason.ATTEMPTS
    policy = presets.polly(median_first_retry_delay="20ms", retry_count=0)
    assert (policy.schedule, policy.max_attempts) == (s.polly_interval(0.02), 1)


@pytest.mark.thorough
@pytest.mark.needs("speed")
def test_tenacity_retries_without_waiting_and_without_end(backend, clock):
    failing = iter([ConnectionError()] * 1000)

    @backend(presets.tenacity_default())
    def call():
        if error := next(failing, None):
            raise error
        return "at last"

    assert call() == "at last"
    assert set(clock.sleeps) <= {0.0}


def test_tenacity_raises_a_retry_error_with_a_limit(backend):
    """Its RetryError has the last attempt, unless `reraise` is set."""
    limited = presets.tenacity_default().replace(max_attempts=3)

    @backend(limited)
    def call():
        raise ConnectionError("no")

    with pytest.raises(RetryError) as caught:
        call()
    assert isinstance(caught.value.__cause__, ConnectionError)
    assert state_of(caught.value).attempt == 3


def test_the_linter_warns_about_the_tenacity_default():
    assert "unsafe" in presets.tenacity_default.__doc__
    assert check(presets.tenacity_default())
