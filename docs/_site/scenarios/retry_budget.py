"""A budget of two retries is used up by one call; the next one fails at once."""

from contextlib import suppress

from docs._site.sequences import Sequence
from retrykit import Policy, retry
from retrykit.budgets import FleetBudget
from retrykit.testing import ScriptedFunction

PARTIES = "client", "retrykit", "budget", "server"


def main(sequence: Sequence) -> None:
    """Make two calls while the server is down, and one when it is back."""
    budget = FleetBudget(capacity=2)

    def left(_: object) -> str:
        return f"{budget.balance:g} left"

    def allowed(cost: float | None) -> str:
        return "no" if cost is None else f"yes, {left(cost)}"

    budget.withdraw = sequence.between(
        "retrykit", "budget", budget.withdraw, "retry?", allowed
    )
    budget.deposit = sequence.between(
        "retrykit", "budget", budget.deposit, "success", left
    )
    server = ScriptedFunction([*[ConnectionError] * 4, "orders"])
    send = sequence.between("retrykit", "server", server, "GET")
    policy = Policy(on=ConnectionError, schedule=["1s", "2s"], budget=budget)
    ask = sequence.between("client", "retrykit", retry(policy)(send), "orders()")

    for _ in range(2):
        with suppress(ConnectionError):
            ask()
    sequence.clock.advance("10s")
    ask()
