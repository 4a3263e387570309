"""Hedges of simulated attempts: the rules of hedges that run."""

from retrykit import GiveUp, Hedge, Policy, RetryAfter
from retrykit.budgets import Budget, TokenBucket
from retrykit.simulate import Clients, Outage, Server, simulate
from tests._support.simulated_attempts import attempts_of

SLOW = {"server": Server(2, slots=4), "outage": None}


def hedge(delay, at_most=2, extra=9):
    return Hedge(delay, at_most=at_most, extra=extra, idempotent=True)


def ends(policy, load, **settings):
    """Return the number, the end and the failure of each attempt."""
    clients = Clients(policy, processes=1, timeout=settings.pop("timeout", None))
    attempts = attempts_of(clients, load, **settings)
    return [(n, round(end, 3), kind) for _, n, _, end, kind, _ in attempts]


def requests(policy, load, **settings):
    clients = Clients(policy, processes=1, timeout=settings.pop("timeout", None))
    settings = {"horizon": "10s"} | settings
    return simulate(clients, load=load, **settings).attempts


def test_an_attempt_that_is_quick_is_sent_once():
    policy = Policy(hedge=hedge("100ms"))
    assert requests(policy, [0, 1, 2]) == 3


def test_a_second_send_wins_where_the_first_is_lost():
    """In an outage that hangs for a share of the requests they are never answered."""
    policy = Policy(hedge=hedge("100ms"), max_attempts=1)
    outage = Outage("50ms", begin=0, share=0.999)
    assert ends(policy, [0, 1], outage=outage) == [(1, 0.111, ""), (1, 1.011, "")]
    assert requests(policy, [0, 1], outage=outage) == 3


def test_the_sends_that_lose_are_neither_successes_nor_failures():
    policy = Policy(hedge=hedge("100ms"), max_attempts=1)
    result = simulate(
        policy, load=[0.2 * i for i in range(200)], horizon="10s", **SLOW_DOWN
    )
    assert result.attempts > 1.5 * result.calls
    assert result.recovery == 0


# Each request takes 300 ms.
SLOW_DOWN = {"server": Server(40, slots=12), "outage": Outage("1ms", "refuse")}


def test_a_send_that_fails_is_followed_by_the_next_one_at_once():
    policy = Policy(hedge=hedge("1h", 3), max_attempts=1)
    outage = Outage("1s", "refuse", begin=0)
    assert ends(policy, [0], outage=outage) == [(1, 0.003, "refused")]
    assert requests(policy, [0], outage=outage) == 3


def test_a_send_that_fails_may_ask_for_a_delay():
    policy = Policy(hedge=hedge("1h"), max_attempts=1)
    settings = {"outage": Outage("1s", "refuse", begin=0)}
    settings["errors"] = {"refused": RetryAfter(2)}
    assert ends(policy, [0], **settings) == [(1, 2.012, "")]
    # A policy that has no time for that makes no other send.
    short = policy.replace(max_elapsed=1)
    assert ends(short, [0], **settings) == [(1, 0.001, "refused")]
    assert ends(short.replace(limits="all"), [0], **settings) == [(1, 2.012, "")]


def test_a_send_that_is_not_to_be_retried_ends_the_attempt():
    policy = Policy(hedge=hedge("1h"), max_attempts=3, schedule=[0, 0])
    settings = {"outage": Outage("1s", "refuse", begin=0)}
    gives_up = policy.replace(hint=lambda error: GiveUp())
    assert ends(gives_up, [0], **settings) == [(1, 0.001, "refused")]
    assert requests(gives_up, [0], **settings) == 1


def test_the_attempt_fails_as_its_first_send():
    policy = Policy(hedge=hedge("100ms"), max_attempts=1)
    settings = {"outage": Outage("150ms", begin=0, share=0.999), "timeout": "500ms"}
    # The second one is refused: the server has a short queue.
    assert ends(policy, [0, 1], **settings)[0] == (1, 0.6, "timeout")


def test_the_timeout_of_the_policy_ends_all_sends():
    policy = Policy(hedge=hedge("100ms"), attempt_timeout="400ms", schedule=[0])
    settings = {"outage": Outage("1s", begin=0)}
    assert ends(policy, [0, 5], **settings) == [
        (1, 0.4, "own timeout"),
        (2, 0.8, "own timeout"),
        (1, 5.011, ""),
    ]
    assert requests(policy, [0, 5], **settings) == 5


class Few(Budget):
    """Pays for as many as it has left, and counts failures."""

    failures = None

    def __init__(self, left):
        self.left = left

    @property
    def balance(self):
        return self.left

    def failed(self, *, first, retryable):
        self.failures.append(first)

    def withdraw(self, error, /):
        if not self.left:
            return None
        self.left -= 1
        return 1.0

    def deposit(self, cost, /):
        pass


def test_the_budget_of_the_process_pays_for_sends():
    for left, sent in ((0, 2), (1, 3), (5, 4)):
        Few.failures = []
        policy = Policy(hedge=hedge("100ms"), max_attempts=1, budget=Few(left))
        outage = Outage("1s", begin=0, share=0.999)
        assert requests(policy, [0, 0.01, 2], outage=outage) == sent + 1
        # A send that failed beside the one that counts is a failure, too.
        assert Few.failures.count(False) == sent - 2


def test_the_extra_load_is_bounded():
    policy = Policy(hedge=hedge("100ms", extra=0.1), max_attempts=1)
    load = [0.3 * index for index in range(100)]
    hedges = requests(policy, load, **SLOW_DOWN | {"horizon": "20s"}) - 100
    assert 8 <= hedges <= 14


def test_a_retry_after_failed_sends_is_hedged_again():
    bucket = TokenBucket(capacity=100, cost=1)
    policy = Policy(hedge=hedge("100ms", 3), schedule=[0.5], budget=bucket)
    outage = Outage("600ms", "refuse", begin=0)
    assert ends(policy, [0, 5], outage=outage) == [
        (1, 0.003, "refused"),
        (2, 0.503 + 0.003, "refused"),
        (1, 5.011, ""),
    ]


def test_a_quantile_learns_the_delay():
    policy = Policy(hedge=Hedge(quantile=0.5, extra=1, idempotent=True), max_attempts=1)
    load = [0.1 * index for index in range(200)]
    server = Server(100, slots=10, service="exponential")
    result = simulate(policy, load=load, server=server, outage=None, horizon="30s")
    assert result.attempts == 200
    one = Clients(policy, processes=1)
    result = simulate(one, load=load, server=server, outage=None, horizon="30s")
    assert 1.3 < result.amplification < 1.7


def test_a_late_answer_to_a_send_ends_the_call():
    policy = Policy(hedge=hedge("100ms"), schedule=[0] * 4, attempt_timeout="300ms")
    settings = {"server": Server(2, slots=2), "late_answers": True}
    # It is served in a second.
    assert ends(policy, [0], **settings)[-1][1:] == (1.001, "")


def test_the_sends_of_an_attempt_are_calls_of_the_sdk():
    policy = Policy(hedge=hedge("100ms"), max_attempts=1)
    clients = Clients(policy, sdk=Policy(schedule=[0.01, 0.01]), processes=1)
    outage = Outage("1s", "refuse", begin=0)
    result = simulate(clients, load=[0, 5], outage=outage, horizon="10s")
    assert result.attempts == 7
