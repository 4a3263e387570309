"""The decisions of simulated calls are those of their policies."""

import sys

import pytest
from hypothesis import given, strategies as st

from retrykit import AsArgument, Failure, Policy, RetryAfter, RetryState, Rule, Stop
from retrykit.budgets import TokenBucket
from retrykit.budgets._base import Budget
from retrykit.hints import retry_after
from retrykit.schedules import constant, decorrelated, exponential
from retrykit.simulate import Clients, Outage, Server
from retrykit.simulate._failures import errors_of
from retrykit.simulate._simulate import run
from retrykit.testing import ScriptedFunction, virtual_time
from retrykit.testing.strategies import schedules
from tests._support.simulated_attempts import attempts_of

REFUSING = Outage("4s", "refuse", begin=0)
ERROR = Outage("4s", "error", begin=0, retry_after=0.3)


def histories(policy, outage, **settings):
    """Return the failures of each call: when, in seconds since it began, how, delay."""
    found = {}

    def take(call, _, now, failure, delay):
        seed = call.draws.seed + call.number
        _, failures = found.setdefault(call, (seed, []))
        failures.append(((now - call.began) / 1e9, failure, delay))

    clients = policy if isinstance(policy, Clients) else Clients(policy, timeout="50ms")
    settings = {"load": "50%", "server": Server(10), "horizon": "10s"} | settings
    run(clients, outage=outage, told=take, hopeless=True, **settings)
    return [*found.values()]


def assert_decided(policy, outage):
    errors = errors_of(outage, None)
    decided = 0
    for seed, failures in histories(policy, outage):
        state = RetryState("call", seed, 0.0, policy.max_elapsed)
        for elapsed, kind, delay in failures:
            if kind is None:
                break
            failure = Failure(state.attempt, errors[kind], None, elapsed, 0.0, None)
            decision = policy.decide(state, failure)
            assert delay == (None if isinstance(decision, Stop) else decision.delay)
            decided += 1
            if delay is not None:
                state = policy.advance(state, failure, decision)
    assert decided


SHORT = (
    schedules()
    .filter(lambda schedule: schedule.bounds(1) is not None)
    .map(lambda schedule: schedule.at_least(0.01).cap(2))
)


@given(
    SHORT,
    st.none() | st.integers(2, 6),
    st.none() | st.floats(2.5, 5),
    st.sampled_from([None, retry_after()]),
    st.sampled_from([REFUSING, ERROR]),
)
def test_the_delays_are_those_that_the_policy_decides(
    schedule, most, allowed, hint, outage
):
    policy = Policy(
        schedule=schedule,
        max_attempts=most if most or allowed else 20,
        max_elapsed=allowed,
        hint=hint,
    )
    assert_decided(policy, outage)


@pytest.mark.parametrize(
    "policy",
    [
        Policy(),
        Policy(seed=7),
        Policy(schedule=decorrelated(0.01).cap(1), max_attempts=9),
        Policy(max_attempts=3, max_elapsed=2, limits="all"),
        Policy(schedule=constant(0.4), max_elapsed=1, deadline="clip"),
        Policy(schedule=constant(0.4), max_elapsed=1, deadline="overshoot"),
        Policy(
            rules=[
                Rule(on=ConnectionError, schedule=[0.1, 0.2]),
                Rule(on=TimeoutError, max_attempts=2),
            ],
            schedule=exponential(0.1).full_jitter(),
        ),
    ],
    ids=["default", "seed", "decorrelated", "all", "clip", "overshoot", "rules"],
)
def test_the_delays_of_a_policy_are_those_that_it_decides(policy):
    seeds = {seed for seed, _ in histories(policy, REFUSING)}
    if policy.seed is None:
        assert_decided(policy, REFUSING)
        assert len(seeds) > 10
    else:
        assert seeds == {7}


@pytest.mark.parametrize(
    "policy",
    [
        Policy(),
        Policy(schedule=decorrelated(0.01).cap(1), max_attempts=9),
        Policy(schedule=[0, 0.1, 0.2]),
        Policy(schedule=constant(0.4), max_elapsed=1.1),
        Policy(hint=retry_after()),
    ],
    ids=["default", "decorrelated", "immediate", "elapsed", "hint"],
)
def test_a_real_call_waits_for_the_same_delays(policy):
    errors = errors_of(ERROR, None)
    for seed, failures in histories(policy, ERROR)[:5]:
        script = [errors[kind] if kind is not None else 1 for _, kind, _ in failures]
        fails = ScriptedFunction(script)
        with virtual_time() as clock:

            def attempt(fails=fails, clock=clock):
                clock.sleep(0.001)
                return fails()

            policy.replace(seed=seed).run(attempt)
        # Those of the attempts alternate with those between them.
        waited = [each for each in clock.sleeps if each != 0.001]
        expected = [delay for *_, delay in failures if delay is not None]
        assert waited == [each for each in expected if each != 0.001]


class Recording(Budget):
    """Allows as many retries as it has left, and keeps what it was told."""

    told = None

    def __init__(self, left):
        self.left = left

    @property
    def balance(self):
        return self.left

    def failed(self, *, first, retryable):
        self.told.append(("failed", first, retryable))

    def withdraw(self, error, /):
        self.told.append(("withdraw", type(error).__name__))
        if not self.left:
            return None
        self.left -= 1
        return 2.5

    def deposit(self, cost, /):
        self.told.append(("deposit", cost))


@pytest.mark.parametrize("left", [2, 1])
def test_a_budget_is_asked_in_the_order_of_a_call(left):
    Recording.told = []
    policy = Policy(schedule=[0.5, 1], budget=Recording(left))
    outage = Outage("1s", "refuse", begin=0)
    attempts_of(Clients(policy, processes=1), [0.2, 5], outage=outage)
    first = [("failed", True, True), ("withdraw", "ConnectionRefusedError")]
    second = [("failed", False, True), ("withdraw", "ConnectionRefusedError")]
    end = [("deposit", 2.5)] if left == 2 else []
    assert Recording.told == [*first, *second, *end, ("deposit", None)]
    # It was copied.
    assert policy.budget.left == left


def test_no_budget_pays_for_an_error_that_is_not_retried():
    Recording.told = []
    on = (ConnectionRefusedError, KeyError)
    policy = Policy(schedule=[0.5, 1], budget=Recording(2), on=on)
    outage = Outage("1s", "refuse", begin=0)
    server = Server(1)
    # The second call has its turn after 1.001 s.
    clients = Clients(policy, processes=1, timeout=1)
    attempts_of(clients, [2, 2.1, 20], outage=outage, server=server)
    assert Recording.told[0] == ("failed", True, False)
    assert {each[0] for each in Recording.told} == {"failed"}


def test_each_process_has_a_budget_of_its_own():
    bucket = TokenBucket(capacity=5, cost=5)
    policy = Policy(schedule=[9], budget=bucket)
    for processes in (1, 4):
        clients = Clients(policy, processes=processes)
        load = [0.1 * i for i in range(60)] + [30]
        outage = Outage("8s", "refuse", begin=0)
        attempts = attempts_of(clients, load, outage=outage)
        retries = [number for _, number, *_ in attempts if number == 2]
        assert len(retries) == processes
    assert bucket.balance == 5


def test_the_clients_share_the_load_by_their_weights():
    once, again = Policy(max_attempts=1), Policy(schedule=[0])
    fleet = [Clients(once, share=4), Clients(again, share=1, processes=3)]
    outage = Outage("10s", "refuse", begin=0)
    attempts = attempts_of(fleet, "60%", outage=outage, horizon="10s")
    refused = [number for _, number, _, _, kind, _ in attempts if kind == "refused"]
    assert refused.count(2) / refused.count(1) == pytest.approx(0.2, abs=0.05)


@pytest.mark.parametrize("connections", [None, 9], ids=["", "with layers"])
def test_recorded_calls_may_say_which_process_made_them(connections):
    bucket = TokenBucket(capacity=10, cost=10, costs=(), reward=1)
    again = Policy(schedule=[0], budget=bucket)
    fleet = [
        Clients(Policy(max_attempts=1)),
        Clients(again, processes=2, connections=connections),
    ]
    attempts = attempts_of(
        fleet,
        [0.1, 0.2, 0.3, 0.4],
        outage=Outage("1s", "refuse", begin=0),
        # The last call finds its bucket empty.
        made_by=[99, 100, 101, 100],
    )
    numbers = [(call, number) for call, number, *_ in attempts]
    assert numbers == [(0, 1), (1, 1), (1, 2), (2, 1), (2, 2), (3, 1)]


def test_errors_of_the_client_are_matched():
    class UnavailableError(Exception):
        pass

    policy = Policy(schedule=[0.5], on=UnavailableError)
    errors = {"unavailable": UnavailableError()}
    outage = Outage("1s", "error", begin=0)
    attempts = attempts_of(policy, [0.5, 5], outage=outage, errors=errors)
    assert [(kind, delay) for *_, kind, delay in attempts[:2]] == [
        ("503", 0.5),
        ("", None),
    ]


def test_errors_in_a_group_are_matched():
    errors = {"refused": ExceptionGroup("both", [OSError(), ValueError()])}
    policy = Policy(schedule=[0.5], on=OSError, exception_groups="any")
    outage = Outage("1s", "refuse", begin=0)
    attempts = attempts_of(policy, [0.7, 5], outage=outage, errors=errors)
    assert [delay for *_, delay in attempts[:2]] == [0.5, None]


def test_a_timeout_that_is_an_argument_raises_what_the_client_raises():
    timeout = AsArgument("50ms")
    policy = Policy(schedule=[0.5], attempt_timeout=timeout, on=TimeoutError)
    attempts = attempts_of(policy, [0, 30], server=Server(1))
    assert [end for _, _, _, end, *_ in attempts[:2]] == pytest.approx([0.05, 0.6])


def test_a_custom_schedule_is_asked():
    def delays():
        yield 0.25

    policy = Policy(schedule=delays)
    attempts = attempts_of(policy, [0.5, 9], outage=Outage("1s", "refuse", begin=0))
    assert [delay for *_, delay in attempts] == [0.25, None, None]


def test_an_error_may_ask_for_its_delay():
    outage = Outage("1s", "refuse", begin=0)
    errors = {"refused": RetryAfter(2.5)}
    attempts = attempts_of(Policy(), [0.5, 9], outage=outage, errors=errors)
    assert [delay for *_, delay in attempts] == [2.5, None, None]


def test_a_retry_may_be_later_than_the_end_of_the_simulation():
    policy = Policy(schedule=[sys.float_info.max])
    attempts = attempts_of(policy, [0.5, 9], outage=Outage("1s", "refuse", begin=0))
    assert [delay for *_, delay in attempts] == [sys.float_info.max, None]
