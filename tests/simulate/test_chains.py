"""Servers in a chain, each of which calls the next one with a policy of its own."""

import pytest

from retrykit import ConfigError, Policy
from retrykit.simulate import Clients, Outage, Server, simulate
from tests._support.simulated_attempts import attempts_of

ONCE = Policy(max_attempts=1)
TWICE = Policy(schedule=[0])
DOWN = Outage("5s", "refuse", begin=0)
# Each request takes 10 ms, besides its call to the next server.
FRONT = Server(10_000, slots=100)


def ends(policy, load, server, **settings):
    attempts = attempts_of(policy, load, server=server, **settings)
    return [(n, round(end, 3), kind) for _, n, _, end, kind, _ in attempts]


def test_a_request_is_served_by_one_server_after_the_other():
    chain = [FRONT, Clients(ONCE), FRONT, Clients(ONCE), Server(10)]
    assert ends(TWICE, [0, 1], chain) == [(1, 0.123, ""), (1, 1.123, "")]


def test_a_failed_call_is_answered_with_a_503():
    chain = [FRONT, Clients(TWICE), Server(10)]
    policy = Policy(schedule=[1], on=Exception)
    assert ends(policy, [1, 9], chain, outage=DOWN)[:2] == [
        (1, 1.013, "failed call"),
        (2, 2.026, "failed call"),
    ]
    # The timeout of a server is that of its own clients.
    hang = Outage("5s", begin=0)
    chain = [FRONT, Clients(ONCE, timeout="300ms"), Server(10)]
    assert ends(policy, [0], chain, outage=hang)[0] == (1, 0.311, "failed call")


@pytest.mark.parametrize("servers", [1, 2, 3, 4])
def test_the_retries_of_layers_multiply(servers):
    chain = [each for _ in range(servers) for each in (FRONT, Clients(TWICE))][:-1]
    result = simulate(TWICE, load=[1, 2, 19], server=chain, outage=DOWN, horizon="15s")
    assert result.requests == tuple(2 * 2**n + 1 for n in range(1, servers + 1))
    assert result.to_dict()["requests"] == [*result.requests]
    assert result.attempts == result.requests[0]


def test_a_server_may_say_that_it_has_retried():
    class RetriedError(Exception):
        pass

    policy = Policy(schedule=[0, 0], give_up_on=RetriedError, on=Exception)
    chain = [FRONT, Clients(policy), FRONT, Clients(policy), Server(10)]
    settings = {"outage": DOWN, "horizon": "15s", "server": chain, "load": [1, 19]}
    errors = {"failed_call": RetriedError()}
    assert simulate(policy, errors=errors, **settings).requests == (2, 2, 4)
    assert simulate(policy, **settings).requests == (4, 10, 28)


def test_a_slot_is_held_while_its_call_is_under_way():
    chain = [Server(100, slots=2), Clients(ONCE), Server(8, slots=4)]
    # Each request takes 521 ms, and the third one finds no slot.
    found = ends(Clients(ONCE, timeout=9), [0, 0, 0, 9], chain)
    expected = [0.522, 0.522, 1.043, 9.522]
    assert found == [(1, time, "") for time in expected]


def test_each_server_has_draws_of_its_own():
    back = Server(10_000, slots=100, service="exponential")
    chain = [back, Clients(ONCE), back]
    settings = {"load": [i / 100 for i in range(1000)], "outage": None}
    one = simulate(ONCE, server=back, **settings | {"horizon": "20s"})
    two = simulate(ONCE, server=chain, **settings | {"horizon": "20s"})
    # The sum of two independent times is seldom as long as twice one of them.
    assert two.mean_wait == pytest.approx(2 * one.mean_wait, rel=0.05)
    assert two.p99 < 1.6 * one.p99
    again = simulate(ONCE, server=chain, **settings | {"horizon": "20s"})
    assert again == two
    other = simulate(ONCE, server=chain, seed=2, **settings | {"horizon": "20s"})
    assert other.mean_wait != two.mean_wait


def test_the_clients_between_servers_may_have_layers():
    below = Clients(TWICE, sdk=TWICE, connections=50)
    result = simulate(
        Clients(TWICE, sdk=TWICE),
        load=[1, 19],
        server=[FRONT, below, Server(10)],
        outage=DOWN,
        horizon="15s",
    )
    assert result.requests == (4 + 1, 16 + 1)


def test_the_load_is_a_share_of_the_lowest_capacity():
    chain = [FRONT, Clients(ONCE), Server(50), Clients(ONCE), Server(2000, slots=5)]
    chain[2] = Server(50, slots=5)
    assert simulate(ONCE, server=chain, horizon="20s").normal == 35


@pytest.mark.parametrize(
    "server",
    [100, [], "ab", [FRONT, FRONT], [FRONT, Clients(ONCE)], [Clients(ONCE)]],
    ids=["number", "none", "text", "servers", "no last one", "clients"],
)
def test_a_chain_alternates_servers_and_clients(server):
    with pytest.raises(ConfigError) as raised:
        simulate(ONCE, server=server)
    assert raised.value.message == (
        "server must be a Server, or a list of servers and, between each two, "
        f"Clients, got {server!r}; write server=[Server(...), Clients(policy), "
        "Server(...)]"
    )


def test_a_server_needs_slots_to_wait_for_the_next_one():
    chain = [Server(1000, slots=1), Clients(ONCE), Server(10)]
    with pytest.raises(ConfigError) as raised:
        simulate(ONCE, server=chain, load="99%")
    assert raised.value.message == (
        "slots must be above 1.01, as each request holds one for 0.102 s, got 1; "
        "while the server waits for the next one"
    )


def test_the_policies_of_a_chain_are_checked():
    chain = [FRONT, Clients(Policy(on=KeyError)), Server()]
    with pytest.raises(ConfigError, match="on must be a condition that matches"):
        simulate(ONCE, server=chain)
