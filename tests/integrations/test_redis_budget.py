"""A budget that processes share on Redis, while Redis is well."""

import pickle
import signal
import subprocess
import sys

import pytest
import redis

from retrykit import ConfigError, Policy, StopReason, aretry, retry
from retrykit.budgets import TokenBucket
from retrykit.integrations.redis import AsyncRedisBudget, RedisBudget
from retrykit.integrations.redis.budgets import flush_all
from tests._support import redis_server
from tests._support.redis_server import KEY

served, server = redis_server.served, redis_server.server
live, way = redis_server.live, redis_server.way

EAGER = Policy(schedule=[0] * 9, max_attempts=4, max_elapsed=None, on=OSError)


def failing(times):
    left = list(range(times, 0, -1))

    def fetch():
        if left:
            raise OSError(left.pop(0))
        return "done"

    return fetch


def test_a_retry_is_paid_for_while_there_are_tokens(way, caplog):
    budget, other = way.budget(TokenBucket(12)), way.budget(TokenBucket(12))
    assert [way(each.withdraw(OSError())) for each in (budget, other, budget)] == [
        5,
        5,
        None,
    ]
    assert (budget.balance, other.balance, way(other.flush())) == (2, 2, 2)
    assert caplog.records == []


def test_it_costs_what_the_bucket_says(way):
    budget = way.budget(TokenBucket(costs=[(TimeoutError, 10), (KeyError, 0)]))
    errors = [TimeoutError(), None, KeyError()]
    assert [way(budget.withdraw(error)) for error in errors] == [10, 5, 0]
    assert budget.balance == 485


def test_what_a_retried_call_gives_back_is_seen_by_others_at_once(way, server):
    budget, other = way.budget(), way.budget()
    for _ in range(2):
        way(budget.withdraw(OSError()))
    way(other.deposit(5))
    assert server.client.get(KEY) == "495"


def test_a_full_bucket_is_no_key(way, server):
    budget = way.budget()
    assert (way(budget.flush()), budget.balance) == (500, 500)
    way(budget.withdraw(OSError()))
    assert server.client.get(KEY) == "495"
    way(budget.deposit(5))
    way(budget.deposit(5))
    assert (server.client.exists(KEY), budget.balance) == (0, 500)


def test_rewards_are_gathered_and_sent_once_in_a_while(way, server, clock):
    server.client.set(KEY, 100)
    budget = way.budget(flush_every=2)
    for _ in range(20):
        way(budget.deposit(None))
        clock.advance(0.099)
    assert (server.scripts(), budget.balance) == (0, 500)
    clock.advance(0.1)
    way(budget.deposit(None))
    way(budget.deposit(None))
    assert (server.scripts(), server.client.get(KEY), budget.balance) == (1, "121", 121)


def test_rewards_go_with_the_next_that_is_asked(way, server):
    server.client.set(KEY, 0)
    budget = way.budget(TokenBucket(reward=3))
    for gathered in (1, 2):
        way(budget.deposit(None))
        assert way(budget.withdraw(OSError())) == (None if gathered == 1 else 5)
    way(budget.deposit(None))
    way(budget.deposit(5))
    assert server.client.get(KEY) == "9"
    way(budget.deposit(None))
    assert (way(budget.flush()), server.scripts()) == (12, 4)


def test_what_blocks_can_be_flushed_all_at_once(way, server):
    """As it is when the interpreter ends, where nothing can be awaited."""
    server.client.set(KEY, 100)
    budgets = [way.budget() for _ in range(3)]
    for budget in budgets[:2]:
        way(budget.deposit(None))
    flush_all()
    sent = 0 if way.awaited else 2
    assert (server.scripts(), server.client.get(KEY)) == (sent, str(100 + sent))


def test_no_reward_makes_it_more_than_full(way, server):
    server.client.set(KEY, 499)
    budget = way.budget(TokenBucket(reward=2**53 - 1))
    way(budget.deposit(None))
    assert (way(budget.flush()), server.client.exists(KEY)) == (500, 0)
    assert way(budget.withdraw(OSError())) == 5


@pytest.mark.parametrize("settings", [{"protocol": 3}, {"decode_responses": True}])
def test_it_counts_one_by_one_however_large_it_is(way, server, settings):
    client = way.client(**settings)
    budget = way.budget(TokenBucket(2**53 - 1, cost=1), client)
    assert [way(budget.withdraw(OSError())) for _ in range(3)] == [1, 1, 1]
    assert server.client.get(KEY) == str(2**53 - 4)


def test_the_key_expires_when_nothing_is_taken_or_given(way, server):
    client = server.client
    budget = way.budget(TokenBucket(5), expire_after="2m")
    for _ in range(2):
        way(budget.withdraw(OSError()))
        assert 119_000 < client.pttl(KEY) <= 120_000
        client.pexpire(KEY, 1000)
    # To look is not to use.
    assert way(budget.flush()) == 0
    assert client.pttl(KEY) <= 1000
    client.delete(KEY)
    assert way(budget.flush()) == 5


def test_a_server_that_forgets_its_scripts_is_told_again(way, server, caplog):
    budget = way.budget()
    way(budget.withdraw(OSError()))
    server.client.script_flush()
    assert way(budget.withdraw(OSError())) == 5
    assert (budget.balance, caplog.records) == (490, [])


def test_retried_calls_are_paid_for(live, server):
    policy = EAGER.replace(budget=live.budget(TokenBucket(20), flush_every="1d"))
    assert live.run(policy, failing(9)).state.stop_reason is StopReason.ATTEMPTS
    outcome = live.run(policy, failing(9))
    assert (outcome.state.attempt, outcome.state.stop_reason) == (2, StopReason.BUDGET)
    assert outcome.error.args == (8,)
    for _ in range(7):
        assert live.run(policy, failing(0)).value == "done"
    assert live.run(policy, failing(1)).value == "done"
    assert server.client.get(KEY) == "7"


def test_a_predicate_that_fails_takes_nothing_and_loses_no_error(way, server):
    bucket = TokenBucket(costs=[(lambda error: error.nothing, 1)])
    outcome = way.run(EAGER.replace(budget=way.budget(bucket)), failing(9))
    assert outcome.error.args == (9,)
    assert server.scripts() == 0


def test_its_balance_can_be_seen_without_asking(way, server):
    budget = way.budget()
    way(budget.withdraw(OSError()))
    server.send(signal.SIGSTOP)
    assert budget.balance == 495
    server.send(signal.SIGCONT)


def test_what_must_be_awaited_is_refused_where_nothing_can():
    budget = AsyncRedisBudget(redis.asyncio.Redis(), TokenBucket(), key=KEY)
    with pytest.raises(ConfigError, match="budget must be a sync budget"):
        retry(budget=budget)(print)
    assert aretry(budget=budget)


def test_it_tells_its_settings_and_nothing_of_the_client():
    client = redis.Redis(host="nowhere.example", password="secret")  # noqa: S106  none
    budget = RedisBudget(client, TokenBucket(90), key=KEY)
    assert repr(budget) == f"<RedisBudget of TokenBucket(capacity=90), key={KEY!r}>"
    with pytest.raises(TypeError, match="create one in each process, with the same"):
        pickle.dumps(budget)


WORKER = """
import sys, threading
import redis
from retrykit.budgets import TokenBucket
from retrykit.integrations.redis import RedisBudget

budget = RedisBudget(redis.Redis(port=int(sys.argv[1])), TokenBucket(1000), key="k")
start, paid = threading.Barrier(4), []

def work():
    start.wait()
    for number in range(40):
        cost = budget.withdraw(OSError())
        paid.append(cost or 0)
        if cost and number % 4 == 0:
            budget.deposit(cost)
            paid.append(-cost)

threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(sum(paid))
# These are sent when the interpreter ends.
for _ in range(7): budget.deposit(None)
"""


def test_processes_and_threads_share_it_to_the_last_token(server):
    client = server.client
    client.set("k", 1000)
    workers = [
        subprocess.Popen(  # noqa: S603  this interpreter, and what is above
            [sys.executable, "-W", "error", "-c", WORKER, str(server.port)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    taken = [int(worker.communicate()[0]) for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * 4
    left = 1000 - sum(taken) + 4 * 7
    assert client.get("k") == str(left)
    # There were 640 retries to pay for, so it was fought for.
    assert left < 4 * 7 + 5
