"""Queues, outages and timeouts, held against times computed by hand."""

import pytest

from retrykit import ConfigError, Policy
from retrykit.hints import retry_after
from retrykit.simulate import Clients, Outage, Server, simulate
from tests._support.simulated_attempts import attempts_of

ONCE = Policy(max_attempts=1)
TWICE = Policy(schedule=[0.5])


def ended(attempts):
    """Return when each attempt ended, and how, by its call."""
    return [(call, round(end, 6), kind) for call, _, _, end, kind, _ in attempts]


def one(policy, timeout=10):
    return Clients(policy, processes=1, timeout=timeout)


def test_one_slot_serves_one_request_after_another():
    # A request takes 1 s, and 1 ms to the server.
    attempts = attempts_of(one(ONCE), [0, 0.1, 5], server=Server(1))
    assert ended(attempts) == [(0, 1.001, ""), (1, 2.001, ""), (2, 6.001, "")]


def test_two_slots_serve_two_requests_at_once():
    server = Server(1, slots=2)
    attempts = attempts_of(one(ONCE), [0, 0.1, 0.2, 5], server=server)
    assert ended(attempts)[:3] == [(0, 2.001, ""), (1, 2.101, ""), (2, 4.001, "")]


def test_the_newest_request_may_be_first():
    server = Server(1, order="newest_first")
    attempts = attempts_of(one(ONCE), [0, 0.1, 0.2, 5], server=server)
    assert ended(attempts)[:3] == [(0, 1.001, ""), (2, 2.001, ""), (1, 3.001, "")]


def test_a_full_queue_rejects_at_once():
    # One is served, and one waits.
    server = Server(1, queue_bound="1s")
    attempts = attempts_of(one(ONCE), [0, 0.1, 0.2, 5], server=server)
    assert ended(attempts)[0] == (2, 0.201, "busy")


def test_a_server_works_on_requests_that_nobody_waits_for():
    attempts = attempts_of(one(ONCE, 1.5), [0, 0.1, 0.2, 1.9, 8], server=Server(1))
    assert ended(attempts)[:4] == [
        (0, 1.001, ""),
        (1, 1.6, "timeout"),
        (2, 1.7, "timeout"),
        # The first two take until 3.001, the third one until 3.001 + 1.
        (3, 3.4, "timeout"),
    ]


def test_a_server_may_drop_what_is_abandoned():
    server = Server(1, drops="abandoned")
    load = [0, 0.1, 0.2, 1.9, 8]
    attempts = attempts_of(one(ONCE, 1.5), load, server=server)
    # The second one is served from 1.001 on, the third one never.
    assert ended(attempts)[:4] == [
        (0, 1.001, ""),
        (1, 1.6, "timeout"),
        (2, 1.7, "timeout"),
        (3, 3.001, ""),
    ]


def test_a_server_may_drop_what_would_be_late():
    server = Server(1, drops="late")
    load = [0, 0.1, 0.2, 1.2, 8]
    attempts = attempts_of(one(ONCE, 1.5), load, server=server)
    # At 1.001 it is known that the second and the third one end too late.
    assert ended(attempts)[:4] == [
        (0, 1.001, ""),
        (1, 1.6, "timeout"),
        (2, 1.7, "timeout"),
        (3, 2.201, ""),
    ]


def test_a_hanging_server_serves_its_queue_after_the_outage():
    outage = Outage("3s", begin="1s")
    attempts = attempts_of(one(ONCE), [0.5, 2, 8], server=Server(1), outage=outage)
    # The first one is being served when the outage begins.
    assert ended(attempts)[:2] == [(0, 1.501, ""), (1, 5.0, "")]


def test_a_server_that_refuses_answers_at_once():
    outage = Outage("3s", "refuse", begin="1s")
    attempts = attempts_of(one(TWICE), [2, 3.8, 8], server=Server(1), outage=outage)
    assert ended(attempts)[:4] == [
        (0, 2.001, "refused"),
        (0, 2.502, "refused"),
        (1, 3.801, "refused"),
        (1, 5.302, ""),
    ]
    assert [delay for *_, delay in attempts[:4]] == [0.5, None, 0.5, None]


def test_an_error_is_answered_while_the_queue_is_served():
    outage = Outage("3s", "error", begin="1s")
    load = [0.5, 0.6, 1.2, 8]
    attempts = attempts_of(one(ONCE), load, server=Server(1), outage=outage)
    assert ended(attempts)[:3] == [(2, 1.201, "503"), (0, 1.501, ""), (1, 2.501, "")]


@pytest.mark.parametrize("asked", [None, 2])
def test_a_retry_after_header_is_obeyed(asked):
    outage = Outage("3s", "error", begin="1s", retry_after=asked)
    policy = TWICE.replace(hint=retry_after(), hint_jitter=0)
    attempts = attempts_of(one(policy), [2, 8], server=Server(1), outage=outage)
    assert attempts[0][-1] == (asked or 0.5)


def test_no_retry_after_comes_from_a_full_queue():
    outage = Outage("1s", "error", begin="9s", retry_after=2)
    policy = TWICE.replace(hint=retry_after(), hint_jitter=0)
    server = Server(1, queue_bound="1s")
    attempts = attempts_of(one(policy), [0, 0, 0, 20], server=server, outage=outage)
    assert attempts[0][-2:] == ("busy", 0.5)


def test_a_share_of_the_requests_fails():
    outage = Outage("10s", "error", begin=0, share=0.25)
    load = [index / 100 for index in range(1000)]
    attempts = attempts_of(one(ONCE), load, server=Server(1000), outage=outage)
    failed = sum(kind == "503" for *_, kind, _ in attempts)
    assert 205 < failed < 295


def test_a_share_of_the_requests_gets_no_answer():
    outage = Outage("10s", begin=0, share=0.25)
    load = [index / 100 for index in range(1000)]
    attempts = attempts_of(one(ONCE, 1), load, server=Server(1000), outage=outage)
    failed = [kind for *_, kind, _ in attempts if kind]
    assert {*failed} == {"timeout"}
    assert 205 < len(failed) < 295


def test_a_server_may_start_slowly():
    outage = Outage("1s", begin=0, slow_start="9s")
    load = [0.5, 5.499, 12]
    server = Server(10)
    attempts = attempts_of(one(ONCE), load, server=server, outage=outage)
    # A tenth of the capacity at 1 s, 55 % at 5.5 s, all at 10 s.
    assert [round(end, 3) for _, end, _ in ended(attempts)] == [2.0, 5.682, 12.101]


def test_an_answer_that_is_late_is_lost_by_default():
    attempts = attempts_of(one(TWICE, 1), [0, 0, 30], server=Server(1))
    assert ended(attempts)[:3] == [
        (0, 1.0, "timeout"),
        (1, 1.0, "timeout"),
        (0, 2.5, "timeout"),
    ]


def test_an_answer_that_is_late_may_end_its_call():
    load = [0, 0, 30]
    attempts = attempts_of(
        one(TWICE, 1), load, server=Server(1), late_answers=True, horizon="60s"
    )
    assert ended(attempts)[:4] == [
        (0, 1.0, "timeout"),
        (1, 1.0, "timeout"),
        # Between two attempts, and while the second one waits.
        (0, 1.001, ""),
        (1, 2.001, ""),
    ]
    # Nothing of them is left for the others.
    assert ended(attempts)[4:] == [(2, 31.0, "timeout"), (2, 31.001, "")]


def test_a_request_is_not_abandoned_while_a_late_answer_counts():
    server = Server(1, drops="abandoned")
    attempts = attempts_of(one(TWICE, 1), [0, 0, 30], server=server, late_answers=True)
    assert ended(attempts)[2:4] == [(0, 1.001, ""), (1, 2.001, "")]


def test_the_attempt_timeout_of_a_policy_is_that_of_its_attempts():
    policy = Policy(schedule=[0.5], attempt_timeout=0.4, on=ConnectionError)
    attempts = attempts_of(Clients(policy), [0, 30], server=Server(1))
    assert ended(attempts)[:2] == [(0, 0.4, "timeout"), (0, 1.3, "timeout")]


def test_an_attempt_ends_with_the_time_of_its_call():
    policy = Policy(schedule=[0.5], attempt_timeout=0.4, max_elapsed=1)
    attempts = attempts_of(Clients(policy), [0, 30], server=Server(1))
    assert ended(attempts)[:2] == [(0, 0.4, "timeout"), (0, 1.0, "timeout")]


@pytest.mark.parametrize(
    "settings",
    [
        {"server": Server(1), "network": "1us", "timeout": "1.000002s"},
        {"server": Server(1, service="exponential")},
        {"server": Server(1), "late_answers": True},
        {"server": [Server(100), Clients(Policy()), Server(10)], "timeout": "113ms"},
    ],
    ids=["a microsecond more", "random", "late answers", "chain"],
)
def test_a_timeout_is_long_enough_if_an_attempt_may_succeed(settings):
    clients = Clients(Policy(), timeout=settings.pop("timeout", "1s"))
    load = [0, 30]
    result = simulate(clients, load=load, outage=None, horizon="60s", **settings)
    assert result.succeeded == 2


@pytest.mark.parametrize("sdk", [None, Policy()])
def test_every_timeout_must_be_long_enough(sdk):
    policy = Policy(attempt_timeout="1s")
    timeout = None if sdk is None else "2s"
    clients = Clients(policy, sdk=sdk, timeout=timeout)
    with pytest.raises(ConfigError, match=r"attempt_timeout must be above 1\.001 s, "):
        simulate(clients, server=Server(1))


def test_a_request_waits_for_the_whole_chain():
    chain = [Server(100), Clients(Policy()), Server(10)]
    with pytest.raises(ConfigError, match=r"timeout must be above 0\.112 s, "):
        simulate(Clients(Policy(), timeout="112ms"), server=chain, load="10%")
