"""Simulate a service that recovers from an outage only under a retry budget.

A service can serve ten calls a second, and six customers arrive each second. For five
seconds it serves none. It serves calls in order, including those whose customer has
timed out, so while its queue is longer than the timeout, all its work is wasted.
Backoff and jitter spread the retries out but do not reduce them: each customer calls
four times, and the queue never ends. A budget allows one retry for five customers, so
the queue shrinks until it is empty.

Prints the calls and successes of some seconds of virtual time, and the totals::

                  without a budget       with a budget
                    calls   served      calls   served
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
    total            1260       60        385      260
    recovered             not in 45 s          after 12 s
"""

import asyncio
import logging
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
    """Serves calls in order, including those that have timed out."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.queue_ends = 0.0
        self.calls: Counter[int] = Counter()
        self.served: Counter[int] = Counter()

    async def call(self) -> None:
        """Return when this call has been served."""
        now = self.clock.now()
        begins = max(now, self.queue_ends)
        if OUTAGE <= begins < BACK:
            begins = BACK
        self.queue_ends = begins + 1 / CAPACITY
        self.calls[int(now)] += 1
        await self.clock.asleep(self.queue_ends - now)
        self.served[int(now)] += 1

    def recovered(self) -> str:
        """Return when all customers of one second are served at once."""
        for second in range(BACK, END):
            if self.served[second] == CUSTOMERS:
                return f"after {second - BACK} s"
        return f"not in {END - BACK} s"


async def visit(number: int, service: Service, policy: Policy) -> None:
    """Call the service as one customer, with retries."""
    await service.clock.asleep(number / CUSTOMERS)
    await policy.replace(seed=number).arun(service.call)


async def simulate(clock: FakeClock, budget: Budget | None) -> Service:
    """Return the service after all customers have called it."""
    service, policy = Service(clock), POLICY.replace(budget=budget)
    numbers = range(CUSTOMERS * END)
    await asyncio.gather(*(visit(number, service, policy) for number in numbers))
    return service


def show(title: str, *columns: tuple[int, int]) -> None:
    """Print a line of the table."""
    cells = (f"{calls:11}{served:9}" for calls, served in columns)
    print(f"{title:10}{''.join(cells)}")


def main() -> None:
    """Simulate the outage without a budget and with one."""
    # Hundreds of retries need no lines of their own.
    logging.getLogger("retrykit.retries").setLevel("ERROR")
    both = []
    for budget in None, RatioBudget(0.2, reserve=0):
        with virtual_time() as clock:
            both.append(asyncio.run(simulate(clock, budget)))

    print("              without a budget       with a budget")
    print("                calls   served      calls   served")
    for second in range(5, END, 5):
        show(f"second {second}", *((s.calls[second], s.served[second]) for s in both))
    show("total", *((s.calls.total(), s.served.total()) for s in both))
    print(f"recovered{both[0].recovered():>24}{both[1].recovered():>20}")


if __name__ == "__main__":
    main()
