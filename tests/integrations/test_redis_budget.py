"""A budget that processes share on Redis."""

import pickle
import signal
import subprocess
import sys

import pytest
import redis

from retrykit import ConfigError, Policy, StopReason, aretry, retry
from retrykit.budgets import TokenBucket
from retrykit.integrations.redis import AsyncRedisBudget, RedisBudget
from retrykit.integrations.redis._budgets import flush_all
from tests._support import redis_server
from tests._support.redis_server import KEY

served, server = redis_server.served, redis_server.server
live_backend, backend = redis_server.live_backend, redis_server.backend

EAGER = Policy(schedule=[0] * 9, max_attempts=4, on=OSError)


def failing(times):
    errors = list(range(times, 0, -1))

    def fetch():
        if errors:
            raise OSError(errors.pop(0))
        return "done"

    return fetch


def test_a_retry_is_paid_for_while_there_are_tokens(backend, caplog):
    budget, other = backend.budget(TokenBucket(12)), backend.budget(TokenBucket(12))
    assert [backend(each.withdraw(OSError())) for each in (budget, other, budget)] == [
        5,
        5,
        None,
    ]
    assert (budget.balance, other.balance, backend(other.flush())) == (2, 2, 2)
    assert caplog.records == []


def test_a_retry_costs_what_the_bucket_says(backend):
    budget = backend.budget(TokenBucket(costs=[(TimeoutError, 10), (KeyError, 0)]))
    errors = [TimeoutError(), None, KeyError()]
    assert [backend(budget.withdraw(error)) for error in errors] == [10, 5, 0]
    assert budget.balance == 485


def test_a_deposit_is_visible_to_other_processes_at_once(backend, server):
    budget, other = backend.budget(), backend.budget()
    for _ in range(2):
        backend(budget.withdraw(OSError()))
    backend(other.deposit(5))
    assert server.client.get(KEY) == "495"


def test_a_refund_is_sent_with_the_next_request(backend, server):
    budget = backend.budget()
    for _ in range(3):
        backend(budget.withdraw(OSError()))
    budget.refund(5)
    assert (server.client.get(KEY), backend(budget.flush())) == ("485", 490)


def test_a_full_bucket_has_no_key(backend, server):
    budget = backend.budget()
    assert (backend(budget.flush()), budget.balance) == (500, 500)
    backend(budget.withdraw(OSError()))
    assert server.client.get(KEY) == "495"
    backend(budget.deposit(5))
    backend(budget.deposit(5))
    assert (server.client.exists(KEY), budget.balance) == (0, 500)


def test_rewards_are_collected_and_sent_periodically(backend, server, clock):
    server.client.set(KEY, 100)
    budget = backend.budget(flush_every=2)
    for _ in range(20):
        backend(budget.deposit(None))
        clock.advance(0.099)
    assert (server.scripts(), budget.balance) == (0, 500)
    clock.advance(0.1)
    backend(budget.deposit(None))
    backend(budget.deposit(None))
    assert (server.scripts(), server.client.get(KEY), budget.balance) == (1, "121", 121)


def test_a_bucket_without_refunds_is_rewarded_for_a_retried_success(backend, server):
    server.client.set(KEY, 0)
    budget = backend.budget(TokenBucket(reward=3, refunds=False))
    backend(budget.deposit(5))
    backend(budget.deposit(5))
    backend(budget.withdraw(OSError()))
    assert server.client.get(KEY) == "1"


def test_rewards_are_sent_with_the_next_request(backend, server):
    server.client.set(KEY, 0)
    budget = backend.budget(TokenBucket(reward=3))
    for gathered in (1, 2):
        backend(budget.deposit(None))
        assert backend(budget.withdraw(OSError())) == (None if gathered == 1 else 5)
    backend(budget.deposit(None))
    backend(budget.deposit(5))
    assert server.client.get(KEY) == "9"
    backend(budget.deposit(None))
    assert (backend(budget.flush()), server.scripts()) == (12, 4)


def test_flush_all_flushes_sync_budgets(backend, server):
    """At exit, where async budgets cannot be flushed."""
    server.client.set(KEY, 100)
    budgets = [backend.budget() for _ in range(3)]
    for budget in budgets[:2]:
        backend(budget.deposit(None))
    flush_all()
    sent = 0 if backend.awaited else 2
    assert (server.scripts(), server.client.get(KEY)) == (sent, str(100 + sent))


def test_rewards_do_not_exceed_the_capacity(backend, server):
    server.client.set(KEY, 499)
    budget = backend.budget(TokenBucket(reward=2**53 - 1))
    backend(budget.deposit(None))
    assert (backend(budget.flush()), server.client.exists(KEY)) == (500, 0)
    assert backend(budget.withdraw(OSError())) == 5


@pytest.mark.parametrize("settings", [{"protocol": 3}, {"decode_responses": True}])
def test_counts_exactly_up_to_the_largest_capacity(backend, server, settings):
    client = backend.client(**settings)
    budget = backend.budget(TokenBucket(2**53 - 1, cost=1), client)
    assert [backend(budget.withdraw(OSError())) for _ in range(3)] == [1, 1, 1]
    assert server.client.get(KEY) == str(2**53 - 4)


def test_an_unused_key_expires(backend, server):
    client = server.client
    budget = backend.budget(TokenBucket(5), expire_after="2m")
    for _ in range(2):
        backend(budget.withdraw(OSError()))
        assert 119_000 < client.pttl(KEY) <= 120_000
        client.pexpire(KEY, 1000)
    # Reading does not extend its life.
    assert backend(budget.flush()) == 0
    assert client.pttl(KEY) <= 1000
    client.delete(KEY)
    assert backend(budget.flush()) == 5


def test_reloads_its_script_after_a_script_flush(backend, server, caplog):
    budget = backend.budget()
    backend(budget.withdraw(OSError()))
    server.client.script_flush()
    assert backend(budget.withdraw(OSError())) == 5
    assert (budget.balance, caplog.records) == (490, [])


def test_retried_calls_are_paid_for(live_backend, server):
    policy = EAGER.replace(
        budget=live_backend.budget(TokenBucket(20), flush_every="1d")
    )
    assert live_backend.run(policy, failing(9)).state.stop_reason is StopReason.ATTEMPTS
    outcome = live_backend.run(policy, failing(9))
    assert (outcome.state.attempt, outcome.state.stop_reason) == (2, StopReason.BUDGET)
    assert outcome.error.args == (8,)
    for _ in range(7):
        assert live_backend.run(policy, failing(0)).value == "done"
    assert live_backend.run(policy, failing(1)).value == "done"
    assert server.client.get(KEY) == "7"


def test_a_failing_cost_predicate_takes_nothing_and_hides_no_error(backend, server):
    bucket = TokenBucket(costs=[(lambda error: error.nothing, 1)])
    outcome = backend.run(EAGER.replace(budget=backend.budget(bucket)), failing(9))
    assert outcome.error.args == (9,)
    assert server.scripts() == 0


def test_balance_sends_no_request(backend, server):
    budget = backend.budget()
    backend(budget.withdraw(OSError()))
    server.send(signal.SIGSTOP)
    assert budget.balance == 495
    server.send(signal.SIGCONT)


def test_an_async_budget_is_rejected_by_sync_calls():
    budget = AsyncRedisBudget(redis.asyncio.Redis(), TokenBucket(), key=KEY)
    with pytest.raises(ConfigError, match="budget must be a sync budget"):
        retry(budget=budget)(print)
    assert aretry(budget=budget)


def test_its_repr_shows_the_settings_but_not_the_client():
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
    remaining = 1000 - sum(taken) + 4 * 7
    assert client.get("k") == str(remaining)
    # The workers attempted 640 retries, so they competed for the budget.
    assert remaining < 4 * 7 + 5
