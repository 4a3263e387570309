"""Limits, an SDK's retries and connections below the attempts of simulated calls."""

import gc
import threading

import pytest

from retrykit import ConfigError, Hedge, Policy
from retrykit.budgets import RatioBudget, TokenBucket
from retrykit.limits import Adapted, CircuitBreaker, Concurrency, RateLimit, Registry
from retrykit.schedules import exponential
from retrykit.simulate import Clients, Outage, Server, Users, simulate
from retrykit.simulate._events import SECOND
from retrykit.simulate._recorder import Recorder
from retrykit.simulate._simulate import run
from tests._support.simulated_attempts import attempts_of

IMMEDIATE = Policy(schedule=[0, 0, 0])
JITTERED = Policy(schedule=exponential(0.1).full_jitter(), max_attempts=4)
DOWN = Outage("5s", "refuse", begin=0)


def ends(attempts):
    """Return call, number, when it ended, and how, of each attempt."""
    return [
        (call, number, round(ended, 3), kind)
        for call, number, _, ended, kind, _ in attempts
    ]


def sent_at(attempts):
    """Return when each attempt was sent, in seconds."""
    return [round(sent, 3) for _, _, sent, *_ in attempts]


def data(*args, **settings):
    """Return the result of a simulation, without its settings."""
    return simulate(*args, **settings).to_dict() | {"settings": None}


@pytest.mark.parametrize(
    ("policy", "settings"),
    [
        (IMMEDIATE, {}),
        (IMMEDIATE, {"late_answers": True}),
        (IMMEDIATE, {"outage": Outage("2s", "refuse", share=0.5)}),
        (JITTERED.replace(budget=RatioBudget()), {"load": Users(100)}),
        (Policy(attempt_timeout=1, max_elapsed=1.5), {"outage": Outage("3s", "error")}),
        (Policy(seed=3), {"server": Server(queue_bound="900ms", drops="abandoned")}),
    ],
    ids=["immediate", "late", "share", "budget", "elapsed", "seed"],
)
def test_connections_without_end_change_nothing(policy, settings):
    settings = {"load": "60%", "outage": "3s", "horizon": "10s"} | settings
    clients = Clients(policy, connections=1_000_000)
    assert data(clients, **settings) == data(policy, **settings)


def test_an_open_breaker_refuses_attempts():
    breaker = CircuitBreaker(consecutive_failures=2, open_for="3s")
    policy = Policy(schedule=[0.5, 0.5], admission=[breaker])
    clients = Clients(policy, processes=1)
    # The calls at 2, 4 and 5 s have no attempt: they find it open.
    attempts = attempts_of(clients, [1, 2, 4, 4.6, 5, 7.7], outage=DOWN)
    assert [(round(sent, 3), kind) for _, _, sent, _, kind, _ in attempts] == [
        (1, "refused"),
        (1.501, "refused"),
        # A probe, after which it opens again.
        (4.6, "refused"),
        (7.7, ""),
    ]
    assert breaker.state == "closed"


def test_a_refused_call_is_a_failure_but_no_load():
    breaker = CircuitBreaker(consecutive_failures=1, open_for="30s")
    policy = Policy(max_attempts=1, admission=[breaker])
    result = simulate(
        Clients(policy, processes=1), load="50%", outage="5s", horizon="60s"
    )
    assert sum(result.load[12:40]) < 5
    assert result.recovery == pytest.approx(26, abs=1)
    # One is under way at the end.
    assert result.calls - (result.succeeded + result.given_up) in {0, 1}


def test_each_process_has_a_breaker_of_its_own():
    breaker = CircuitBreaker(consecutive_failures=1, open_for="1m")
    policy = Policy(max_attempts=1, admission=[breaker])
    for processes in (1, 4):
        clients = Clients(policy, processes=processes)
        load = [0.1 * index for index in range(40)]
        attempts = attempts_of(clients, load, outage=DOWN)
        assert len(attempts) == processes


def test_a_call_waits_for_a_breaker_if_its_policy_says_so():
    breaker = CircuitBreaker(consecutive_failures=1, open_for="3s")
    policy = Policy(
        schedule=[0.5] * 5, admission=[breaker], on_refused="wait", max_elapsed="6s"
    )
    attempts = attempts_of(Clients(policy, processes=1), [1, 2], outage=DOWN)
    # The second call is refused without an end that is known while there is a probe.
    assert ends(attempts)[:2] == [(0, 1, 1.001, "refused"), (0, 2, 4.002, "refused")]
    assert {call for call, *_ in ends(attempts)[2:]} <= {0, 1}
    refused = policy.replace(max_elapsed="2s")
    attempts = attempts_of(Clients(refused, processes=1), [1, 2], outage=DOWN)
    assert ends(attempts) == [(0, 1, 1.001, "refused")]


def test_a_refused_retry_is_given_back_to_the_budget():
    breaker = CircuitBreaker(consecutive_failures=2, open_for="10s")
    policy = Policy(
        schedule=[3], admission=[breaker], budget=TokenBucket(capacity=5, cost=5)
    )
    # The breaker opens while the first call waits for its retry.
    load = [0, 1, 12.1, 15.2, 30]
    attempts = attempts_of(
        Clients(policy, processes=1), load, outage=Outage("13s", "refuse", begin=0)
    )
    assert [(call, number) for call, number, *_ in attempts][:3] == [
        (0, 1),
        (1, 1),
        (2, 1),
    ]


def test_a_concurrency_limit_queues_attempts():
    limit = Concurrency(1, queue=1)
    policy = Policy(max_attempts=1, admission=[limit])
    clients = Clients(policy, processes=1, timeout="2s")
    attempts = attempts_of(clients, [0, 0.1, 0.2, 5], server=Server(1))
    # The third finds no place, and has no attempt.
    assert sent_at(attempts) == [0, 1.001, 5]


def test_a_wait_for_a_permit_ends():
    limit = Concurrency(1, queue=9, max_wait="500ms")
    policy = Policy(max_attempts=1, admission=[limit])
    clients = Clients(policy, processes=1, timeout="2s")
    calls = []
    run(
        clients,
        load=[0, 0.1, 0.7, 5],
        server=Server(1),
        told=lambda call, *_: calls.append(round(call.began / 1e9, 3)),
    )
    # The call at 0.1 s has no attempt.
    assert calls == [0, 0.7, 5]


def test_the_newest_attempt_takes_the_place_of_the_oldest():
    limit = Concurrency(1, queue=1, order="lifo")
    policy = Policy(max_attempts=1, admission=[limit])
    clients = Clients(policy, processes=1, timeout="2s")
    calls = []
    run(
        clients,
        load=[0, 0.1, 0.7, 5],
        server=Server(1),
        told=lambda call, *_: calls.append(round(call.began / 1e9, 3)),
    )
    # The call at 0.1 s has no attempt.
    assert calls == [0, 0.7, 5]


def test_a_rate_limit_delays_attempts():
    policy = Policy(max_attempts=1, admission=[RateLimit(1, per="2s")])
    clients = Clients(policy, processes=1)
    attempts = attempts_of(clients, [1, 1.5, 9])
    assert sent_at(attempts) == [1, 3, 9]
    short = policy.replace(max_elapsed=1)
    attempts = attempts_of(Clients(short, processes=1), [1, 1.5, 9])
    assert sent_at(attempts) == [1, 9]


@pytest.mark.parametrize(
    ("policy", "wait"), [({}, None), ({"max_elapsed": 9, "deadline": "overshoot"}, 9)]
)
def test_a_policy_may_wait_for_a_rate_without_a_limit(policy, wait):
    limit = RateLimit(1, per="10s")
    clients = Clients(Policy(max_attempts=1, admission=[limit], **policy), processes=1)
    attempts = attempts_of(clients, [1, 1.5])
    assert sent_at(attempts) == [1, 11]


def test_a_late_answer_ends_a_wait_for_a_limit():
    limit = RateLimit(1, per="4s")
    policy = Policy(schedule=[0], admission=[limit])
    clients = Clients(policy, processes=1, timeout="500ms")
    settings = {"server": Server(1), "late_answers": True}
    attempts = attempts_of(clients, [0, 9], **settings)
    assert [(number, kind) for _, number, *_, kind, _ in attempts][:2] == [
        (1, "timeout"),
        (1, ""),
    ]
    # So it does between attempts.
    slow = Policy(schedule=[3], admission=[limit])
    attempts = attempts_of(
        Clients(slow, processes=1, timeout="500ms"), [0, 9], **settings
    )
    assert [round(end, 3) for _, _, _, end, *_ in attempts][:2] == [0.5, 1.001]


def test_a_late_answer_ends_a_wait_in_a_queue():
    policy = Policy(schedule=[0], admission=[Concurrency(1, queue=5)])
    clients = Clients(policy, processes=1, timeout="500ms")
    # The retry of the first call waits behind two other calls.
    load, settings = [0, 0.1, 0.2, 9], {"server": Server(1), "late_answers": True}
    found = ends(attempts_of(clients, load, **settings))
    assert found[:2] == [(0, 1, 0.5, "timeout"), (1, 1, 1.0, "timeout")]
    assert (0, 1, 1.001, "") in found


def test_calls_that_wait_in_a_queue_are_not_forgotten():
    """Nothing but the limit may refer to them, which does so weakly."""
    policy = Policy(schedule=[0], admission=[Concurrency(1, queue=5)])
    clients = Clients(policy, processes=1, timeout="1.5s")
    settings = {"load": [0, 0.1, 0.2, 9], "server": Server(1), "horizon": "20s"}
    collected = simulate(clients, progress=lambda *_: gc.collect(1), **settings)
    assert collected == simulate(clients, **settings)
    assert collected.succeeded + collected.given_up == 4


def test_a_late_answer_ends_a_pause():
    clients = Clients(Policy(schedule=[3]), connections=9, timeout="500ms")
    settings = {"server": Server(1), "late_answers": True}
    found = ends(attempts_of(clients, [0, 9], **settings))
    assert found[:2] == [(0, 1, 0.5, "timeout"), (0, 1, 1.001, "")]


def test_a_request_after_the_end_is_not_counted():
    recorder = Recorder(10)
    recorder.finish_request(11 * SECOND, succeeded=None)
    recorder.refuse(11 * SECOND)
    assert (recorder.pending, sum(recorder.failed)) == (0, 0)


def own_schedule():
    yield 1.0


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        (
            Adapted(threading.Semaphore(2)),
            (
                "admission[0] must be a CircuitBreaker, Concurrency, RateLimit or "
                "AdaptiveRateLimit in a simulation, got "
            ),
        ),
        (
            CircuitBreaker(open_for=exponential(1).full_jitter()),
            (
                "admission[0] must be without random numbers in the open_for of a "
                "simulated breaker, got "
            ),
        ),
        (
            CircuitBreaker(open_for=own_schedule),
            (
                "admission[0] must be without random numbers in the open_for of a "
                "simulated breaker, got "
            ),
        ),
        (Registry(CircuitBreaker), "admission[0] must be a CircuitBreaker"),
    ],
    ids=["adapted", "jitter", "own schedule", "registry"],
)
def test_limits_that_cannot_be_simulated_are_errors(limit, text):
    with pytest.raises(ConfigError) as raised:
        simulate(Policy(admission=[limit]))
    assert raised.value.message.startswith(text)


def test_a_breaker_may_open_for_longer_each_time():
    breaker = CircuitBreaker(consecutive_failures=1, open_for=exponential(1))
    policy = Policy(
        schedule=[0] * 9, admission=[breaker], on_refused="wait", max_elapsed=60
    )
    attempts = attempts_of(Clients(policy, processes=1), [0, 30], outage=DOWN)
    assert [round(sent) for _, _, sent, *_ in attempts][:4] == [0, 1, 3, 7]


class TestSDK:
    """An SDK that retries below the policy."""

    def test_its_retries_multiply_those_of_the_policy(self):
        policy = Policy(schedule=[1, 1])
        clients = Clients(policy, sdk=Policy(schedule=[0.1, 0.2]))
        attempts = attempts_of(clients, [0, 9], outage=DOWN)
        assert ends(attempts) == [
            (0, 1, 0.303, "refused"),
            (0, 2, 1.606, "refused"),
            (0, 3, 2.909, "refused"),
            (1, 1, 9.011, ""),
        ]
        result = simulate(clients, load=[0, 9], outage=DOWN, horizon="10s")
        assert (result.attempts, result.retries, result.amplification) == (10, 8, 5)

    def test_its_requests_have_a_timeout_and_attempts_one_of_the_policy(self):
        clients = Clients(
            Policy(schedule=[0], attempt_timeout="700ms"),
            sdk=Policy(schedule=[0, 0], attempt_timeout="300ms"),
        )
        assert clients.timeout == 0.3
        settings = {"outage": Outage("5s", begin=0)}
        attempts = attempts_of(clients, [0, 19], **settings)
        assert ends(attempts)[:2] == [
            (0, 1, 0.7, "own timeout"),
            (0, 2, 1.4, "own timeout"),
        ]
        result = simulate(clients, load=[0, 9], horizon="10s", **settings)
        assert result.attempts == 7

    def test_a_pause_between_its_retries_ends_with_the_attempt(self):
        clients = Clients(
            Policy(schedule=[0], attempt_timeout="700ms"), sdk=Policy(schedule=[3])
        )
        attempts = attempts_of(clients, [0, 19], outage=DOWN)
        assert ends(attempts)[:1] == [(0, 1, 0.7, "own timeout")]

    def test_it_has_a_budget_of_its_own(self):
        budget = TokenBucket(capacity=5, cost=5)
        policy = Policy(schedule=[0, 0], budget=budget)
        for sdk, requests in ((policy, 3), (policy.replace(budget=None), 6)):
            clients = Clients(policy, sdk=sdk, processes=1)
            result = simulate(clients, load=[0, 9], outage=DOWN, horizon="10s")
            assert result.attempts == requests + 1

    def test_a_late_answer_to_its_request_ends_the_call(self):
        clients = Clients(
            Policy(max_attempts=1), sdk=Policy(schedule=[0] * 3), timeout="400ms"
        )
        settings = {"server": Server(1), "late_answers": True}
        assert ends(attempts_of(clients, [0, 9], **settings))[0] == (
            0,
            1,
            1.001,
            "",
        )

    def test_it_has_no_limits(self):
        for sdk in (
            Policy(admission=[RateLimit(5)]),
            Policy(hedge=Hedge("1s", idempotent=True)),
        ):
            with pytest.raises(ConfigError, match="sdk must be a policy without"):
                Clients(Policy(), sdk=sdk)
        with pytest.raises(ConfigError, match="the attempt_timeout of the sdk, 2 s"):
            Clients(Policy(), sdk=Policy(attempt_timeout=2), timeout=1)
        with pytest.raises(ConfigError, match="on must be a condition that matches"):
            simulate(Clients(Policy(), sdk=Policy(on=KeyError)))


class TestConnections:
    """A pool of connections for each process."""

    def test_a_request_waits_for_one_within_its_timeout(self):
        clients = Clients(
            Policy(max_attempts=1), processes=1, connections=1, timeout="1200ms"
        )
        attempts = attempts_of(clients, [0, 0.1, 0.2, 9], server=Server(2))
        assert ends(attempts) == [
            (0, 1, 0.501, ""),
            (1, 1, 1.002, ""),
            (2, 1, 1.4, "timeout"),
            (3, 1, 9.501, ""),
        ]

    def test_one_that_waits_in_vain_is_not_sent(self):
        # The second attempt of the first call has 100 ms, while the second call waits.
        policy = Policy(schedule=[0], attempt_timeout="500ms", max_elapsed="600ms")
        clients = Clients(policy, processes=1, connections=1)
        outage = Outage("2s", begin=0)
        settings = {"load": [0, 0.3, 9], "horizon": "10s", "outage": outage}
        result = simulate(clients, **settings)
        assert (result.attempts, result.given_up) == (4, 2)
        free = simulate(clients.policy, **settings)
        assert (free.attempts, free.given_up) == (5, 2)

    def test_a_connection_is_free_after_a_timeout(self):
        clients = Clients(Policy(schedule=[0]), connections=1, processes=1, timeout=1)
        attempts = attempts_of(clients, [0], outage=Outage("1.5s", begin=0))
        assert ends(attempts) == [(0, 1, 1.0, "timeout"), (0, 2, 1.52, "")]

    def test_a_number_is_at_least_one(self):
        with pytest.raises(ConfigError, match="connections must be an integer >= 1"):
            Clients(Policy(), connections=0)
