"""Keep a service alive that the retries of its callers would keep dead.

A service can serve ten calls a second, and six customers come each second. For
five seconds it stands still. It serves calls in turn, those too whose customer
has hung up: as long as its queue is longer than customers wait, it works for
nobody. Backoff and jitter spread their retries out, and make them no fewer:
each customer calls four times, and the queue never ends. Under a budget there
is one retry for five customers, so the queue gets shorter, and is gone.

The numbers come out of a simulation, which runs in virtual time.

Prints the calls and answers of some of the seconds, and of all::

                  without a budget       with a budget
                    calls  answers      calls  answers
    second 5            6        6          6        6
    second 10           6        0          6        0
    second 15          26        0          6        0
    second 20          27        0          6        0
    second 25          30        0          6        0
    second 30          26        0          6        6
    second 35          22        0          6        6
    second 40          18        0          6        6
    second 45          22        0          6        6
    second 50          23        0          6        6
    second 55          21        0          6        6
    in all           1260       60        385      260
    served again          not in 45 s          after 12 s
"""

import asyncio
from collections import Counter

from retrykit import Policy
from retrykit.budgets import Budget, RatioBudget
from retrykit.schedules import exponential
from retrykit.testing import FakeClock, virtual_time

CUSTOMERS, CAPACITY = 6, 10  # each second
OUTAGE, BACK, END = 10, 15, 60  # seconds

POLICY = Policy(
    schedule=exponential("500ms", factor=2).full_jitter(),
    max_attempts=4,
    attempt_timeout="1s",
)


class Service:
    """Serves one call after the other, and those too that nobody waits for."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.queue_ends = 0.0
        self.calls: Counter[int] = Counter()
        self.answers: Counter[int] = Counter()

    async def call(self) -> None:
        """Return when it is this call's turn and the answer is there."""
        now = self.clock.now()
        begins = max(now, self.queue_ends)
        if OUTAGE <= begins < BACK:
            begins = BACK
        self.queue_ends = begins + 1 / CAPACITY
        self.calls[int(now)] += 1
        await self.clock.asleep(self.queue_ends - now)
        self.answers[int(now)] += 1

    def recovered(self) -> str:
        """Return when as many were served in a second as come in one."""
        for second in range(BACK, END):
            if self.answers[second] == CUSTOMERS:
                return f"after {second - BACK} s"
        return f"not in {END - BACK} s"


async def visit(number: int, service: Service, policy: Policy) -> None:
    """Come in one's own time, and call until there is an answer or no hope."""
    await service.clock.asleep(number / CUSTOMERS)
    await policy.replace(seed=number).arun(service.call)


async def simulate(clock: FakeClock, budget: Budget | None) -> Service:
    """Return the service after the visits of all customers."""
    service, policy = Service(clock), POLICY.replace(budget=budget)
    numbers = range(CUSTOMERS * END)
    await asyncio.gather(*(visit(number, service, policy) for number in numbers))
    return service


def show(title: str, *columns: tuple[int, int]) -> None:
    """Print a line of the table."""
    cells = (f"{calls:11}{answers:9}" for calls, answers in columns)
    print(f"{title:10}{''.join(cells)}")


def main() -> None:
    """Simulate it without a budget and with one."""
    both = []
    for budget in None, RatioBudget(0.2, reserve=0):
        with virtual_time() as clock:
            both.append(asyncio.run(simulate(clock, budget)))

    print("              without a budget       with a budget")
    print("                calls  answers      calls  answers")
    for second in range(5, END, 5):
        show(f"second {second}", *((s.calls[second], s.answers[second]) for s in both))
    show("in all", *((s.calls.total(), s.answers.total()) for s in both))
    print(f"served again{both[0].recovered():>21}{both[1].recovered():>20}")


if __name__ == "__main__":
    main()
