"""Results: counts, verdicts, and the forms in which they are written."""

import copy
import json
import pickle

import pytest

from retrykit import Policy, presets
from retrykit.budgets import RatioBudget
from retrykit.simulate import Clients, Outage, Server, Users, simulate
from retrykit.simulate._events import SECOND
from retrykit.simulate._recorder import Recorder, Waits
from retrykit.simulate._simulate import run

IMMEDIATE = Policy(schedule=[0, 0, 0])


def recorder(outcomes):
    """Return a recorder of seconds, each with its successes and its failures."""
    made = Recorder(len(outcomes))
    for second, (succeeded, failed) in enumerate(outcomes):
        for index in range(succeeded + failed):
            sent = second * SECOND + index
            made.send(sent, first=True)
            made.finish(sent, succeeded=index >= failed)
    return made


GOOD, BAD = (95, 5), (94, 6)


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ([BAD, *[GOOD] * 5], 4),
        ([BAD, (99, 1), *[GOOD] * 4], 0),
        ([BAD, BAD, *[GOOD] * 5], SECOND + 4),
        ([BAD, *[GOOD] * 4, BAD, *[GOOD] * 5], 5 * SECOND + 4),
        ([BAD, *[(0, 0)] * 5], None),
        ([BAD, *[(0, 0)] * 7, (1, 0), (0, 1), *[(1, 0)] * 5], 0),
        ([BAD, *[(0, 0)] * 5, (0, 1), *[(0, 0)] * 5, (1, 0)], 5 * SECOND),
        ([BAD, *[GOOD] * 4], None),
        ([BAD], None),
    ],
    ids=[
        "at once",
        "one",
        "later",
        "relapse",
        "nothing sent",
        "one sent",
        "one fails",
        "late",
        "end",
    ],
)
def test_recovery_is_the_last_failure_before_five_good_seconds(outcomes, expected):
    found = recorder(outcomes).recovery(SECOND)
    assert found == expected


DOWN = [(89, 11)] * 10


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ([GOOD] * 20, None),
        ([*[GOOD] * 6, *[(90, 10)] * 10], None),
        ([*[GOOD] * 6, *DOWN], 16),
        ([*[GOOD] * 6, *DOWN, (99, 1)], 16),
        ([*[GOOD] * 6, *DOWN[1:]], None),
        ([*[GOOD] * 6, *DOWN, *[GOOD] * 4, *DOWN, *[(100, 0)] * 9], 30),
    ],
    ids=["never", "nearly", "at the end", "once", "not long", "twice"],
)
def test_a_relapse_is_ten_bad_seconds_after_the_recovery(outcomes, expected):
    assert recorder(outcomes).last_relapse(SECOND) == expected


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("delay", "outcome", "verdict"),
    [
        (30, "fails again", "recovers at once, but fails again: 5.0 times its load"),
        (0, "recovers", "recovers at once"),
    ],
)
def test_a_server_may_fail_again_when_long_delays_end(delay, outcome, verdict):
    policy = Policy(schedule=[delay, 0, 0, 0])
    result = simulate(policy, load="90%", outage=Outage("10s", "error"), horizon="2m")
    assert (result.outcome, result.verdict) == (outcome, verdict)


def test_a_verdict_tells_when_a_server_is_up_for_good():
    outage = Outage("10s", "error")
    result = simulate(presets.dramatiq(), load="70%", outage=outage)
    assert result.outcome == "recovers"
    assert result.verdict == "recovers at once, and for good after 36 s"


def test_no_recovery_without_an_attempt_that_succeeds():
    # A request takes two seconds, and its client waits for one.
    result = run(Policy(), load="20%", outage="10s", server=Server(0.5), hopeless=True)
    assert result.succeeded == 0
    assert result.outcome == "does not recover"


@pytest.mark.parametrize(
    ("outage", "expected"),
    [
        ("10s", "not decided: no calls within 10 s after the outage"),
        (None, "no outage: no calls"),
    ],
)
def test_a_verdict_without_calls_says_so(outage, expected):
    result = simulate(Policy(), load=[1000], outage=outage, horizon="10s")
    assert (result.verdict, result.recovery) == (expected, None)


def test_an_outage_may_end_within_a_second():
    assert recorder([BAD] * 2 + [GOOD] * 5).recovery(3 * SECOND // 2) == SECOND // 2 + 4


def test_what_happens_after_the_end_is_not_counted():
    made = Recorder(1)
    for act in (made.begin, made.give_up):
        act(SECOND)
    made.send(SECOND, first=False)
    made.finish(SECOND, succeeded=True)
    made.succeed(0, SECOND)
    counts = [made.calls, made.sent, made.goodput, made.given_up, made.succeeded]
    assert counts == [[0]] * 5
    assert (sum(made.retried), made.pending, made.waits.count) == (0, 0, 0)


def test_quantiles_are_those_of_the_times_within_a_part_in_256():
    waits = Waits()
    times = [index**3 for index in range(1, 1001)]
    for each in times:
        waits.add(each)
    for share in (0.001, 0.5, 0.95, 0.99, 1):
        exact = times[round(1000 * share) - 1] / SECOND
        assert waits.quantile(share) == pytest.approx(exact, rel=1 / 256)
    assert waits.mean() == pytest.approx(sum(times) / 1000 / SECOND)


def test_of_no_times_there_are_no_quantiles():
    assert (Waits().mean(), Waits().quantile(0.5)) == (None, None)


def test_the_same_seed_gives_the_same_result_and_another_one_another():
    settings = {"load": "60%", "horizon": "20s"}
    policy = Policy(budget=RatioBudget())
    first = simulate(policy, seed=3, **settings)
    assert first == simulate(policy, seed=3, **settings)
    assert first != simulate(policy, seed=4, **settings)
    assert policy.budget.balance == 1


def test_a_result_is_the_same_to_the_digit_on_any_machine():
    result = simulate(Policy(), load="60%", horizon="20s")
    counts = (result.attempts, result.succeeded, result.load[::8])
    assert counts == (8587, 576, (57, 55, 274, 301, 298))
    waits = (result.p50, result.p99, result.mean_wait)
    assert waits == (0.014057472, 0.043384832, 0.017441128600694446)


def test_the_counts_of_a_result_agree():
    result = simulate(IMMEDIATE, load="20%", horizon="100s")
    assert result.attempts == sum(result.load) == result.calls + result.retries
    assert result.succeeded == sum(result.goodput)
    assert 0 <= result.calls - result.succeeded - result.given_up < 20
    assert result.amplification == result.attempts / result.calls
    assert result.normal == 20
    assert result.peak == max(result.load) / 20
    assert len(result.load) == 120
    assert result.p50 <= result.p95 <= result.p99


@pytest.mark.parametrize(
    ("load", "verdict"),
    [
        ("20%", "recovers 33.5 s after the outage"),
        ("60%", "does not recover within 1 min 40 s: 3.8 times its load"),
    ],
)
def test_a_verdict_names_its_times(load, verdict):
    result = simulate(IMMEDIATE, load=load, horizon="100s")
    assert str(result) == result.verdict == verdict


def test_a_load_that_is_normal_is_no_multiple():
    outage = Outage("10s", slow_start="1000s")
    result = simulate(Policy(max_attempts=1), load="90%", outage=outage, horizon="60s")
    assert result.verdict == "does not recover within 1 min, at its normal load"


def test_a_recovery_near_the_horizon_is_not_decided():
    result = simulate(IMMEDIATE, load="20%", horizon="40s")
    assert result.outcome == "not decided"
    assert result.verdict == (
        "not decided: recovers 33.5 s after the outage, which is near the horizon of "
        "40 s"
    )


def test_without_an_outage_the_verdict_is_what_succeeds():
    result = simulate(IMMEDIATE, load="50%", outage=None, horizon="20s")
    assert result.verdict == "no outage: 99.9% of the calls succeed"
    assert (result.outcome, result.recovery) == ("no outage", None)


@pytest.mark.parametrize("outage", [None, Outage("10s", begin=0)])
@pytest.mark.parametrize("load", [Users(40, "1s"), [n / 40 for n in range(1600)]])
def test_the_normal_load_is_known_without_a_time_before_the_outage(outage, load):
    result = simulate(IMMEDIATE, load=load, outage=outage, horizon="30s")
    assert result.normal == pytest.approx(40, rel=0.05)
    assert result.peak <= 4


def test_the_normal_load_of_users_is_counted_before_the_outage():
    result = simulate(IMMEDIATE, load=Users(20), horizon="20s")
    assert result.normal == pytest.approx(10, rel=0.3)
    quiet = simulate(IMMEDIATE, load=[15], horizon="20s")
    assert (quiet.normal, quiet.calls) == (1 / 15, 1)


def test_a_load_may_be_next_to_nothing():
    assert simulate(IMMEDIATE, load=5e-324, horizon="20s").calls == 0


def test_a_simulation_of_nothing_has_a_result():
    result = simulate(IMMEDIATE, load=[100], outage=None, horizon="20s")
    assert (result.calls, result.amplification, result.mean_wait) == (0, 1.0, None)
    assert result.verdict == "no outage: no calls"


def test_a_result_is_written_as_json_and_csv():
    result = simulate(IMMEDIATE, load="20%", horizon="20s")
    data = json.loads(result.to_json())
    assert data == result.to_dict()
    assert data["load"] == [*result.load]
    first, *rows = result.to_csv().splitlines()
    assert first == "second,load,goodput,queue,pending"
    assert rows[12] == f"12,{result.load[12]},{result.goodput[12]},135,0"
    assert len(rows) == 40


def test_a_result_has_all_settings():
    result = simulate(IMMEDIATE, load=0.2, horizon="20s", seed=7)
    assert result.settings == {
        "clients": [repr(Clients(IMMEDIATE))],
        "load": "0.2",
        "outage": repr(Outage("10s")),
        "server": repr(Server()),
        "network": 0.001,
        "late_answers": False,
        "horizon": 20.0,
        "errors": [
            "TimeoutError('no answer in time')",
            "ConnectionRefusedError('connection refused')",
            "ServiceUnavailable('503 Service Unavailable')",
            "ServiceUnavailable('503 Service Unavailable')",
        ],
        "seed": 7,
    }
    for load, text in [
        (Users(5), "Users(number=5, think=2.0)"),
        ([0.5, 1], "2 recorded calls"),
        ("20 %", "20 %"),
    ]:
        result = simulate(IMMEDIATE, load=load, horizon="20s")
        assert result.settings["load"] == text
    alone = simulate(IMMEDIATE, load="20%", outage=None, horizon="20s")
    assert alone.settings["outage"] is None


@pytest.mark.parametrize(
    "value",
    [Outage("3s", "error", retry_after=2), Server(5), Users(7), Clients(Policy())],
    ids=["outage", "server", "users", "clients"],
)
def test_the_settings_are_values(value):
    assert copy.copy(value) == value == pickle.loads(pickle.dumps(value))  # noqa: S301
    assert hash(copy.deepcopy(value)) == hash(value)
    assert value.replace() == value
    assert eval(repr(value)) == value  # noqa: S307  its own expression


def test_a_result_can_be_pickled():
    result = simulate(IMMEDIATE, load="20%", horizon="20s")
    assert pickle.loads(pickle.dumps(result)) == result  # noqa: S301


def test_the_queue_and_the_pending_retries_are_counted_at_the_end_of_each_second():
    """A server that serves nothing for a second: whose calls time out and wait."""
    policy = Policy(schedule=[5])
    calls = [0.5, 0.6, 2.5]
    result = simulate(
        Clients(policy, processes=1, timeout="200ms"),
        load=calls,
        outage=Outage("1s", begin=0),
        horizon="10s",
    )
    assert result.queue == (2, *[0] * 10)
    assert result.pending == (2, 2, 2, 2, 2, *[0] * 6)
    assert result.load == (2, 0, 1, 0, 0, 2, *[0] * 5)
