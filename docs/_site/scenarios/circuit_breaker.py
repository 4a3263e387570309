"""Two failures in a row open a breaker; after 30 s, a probe closes it."""

from contextlib import suppress

from docs._site.sequences import Sequence
from retrykit import CircuitOpenError, Policy, retry
from retrykit.limits import CircuitBreaker, Lease
from retrykit.testing import ScriptedFunction

PARTIES = "client", "retrykit", "breaker", "server"


def main(sequence: Sequence) -> None:
    """Call a server that is down, and later one that is back."""
    breaker = CircuitBreaker(consecutive_failures=2, open_for="30s")
    breaker.observers.append(lambda change: sequence.note("breaker", change.new))
    breaker.acquire = sequence.between(
        *("retrykit", "breaker", breaker.acquire, "may I?"),
        lambda answer: "yes" if isinstance(answer, Lease) else "no",
    )
    server = ScriptedFunction([ConnectionError, ConnectionError, "orders"])
    send = sequence.between("retrykit", "server", server, "GET")
    policy = Policy(on=ConnectionError, schedule=["1s", "2s"], admission=[breaker])
    ask = sequence.between("client", "retrykit", retry(policy)(send), "orders()")

    with suppress(ConnectionError):
        ask()
    sequence.clock.advance("9s")
    with suppress(CircuitOpenError):
        ask()
    sequence.clock.advance("21s")
    ask()
