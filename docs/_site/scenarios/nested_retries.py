"""A retried function calls another one; only the inner one retries."""

from contextlib import suppress

from docs._site.sequences import Sequence
from retrykit import Policy, retry
from retrykit.testing import ScriptedFunction

PARTIES = "client", "order", "pay", "server"


def main(sequence: Sequence) -> None:
    """Call a server that is down through two layers of three attempts each."""
    policy = Policy(on=ConnectionError, schedule=["1s", "2s"])
    server = ScriptedFunction([ConnectionError, ...])
    send = sequence.between("pay", "server", server, "POST")
    pay = retry(policy, name="pay")(send)
    call = sequence.between("order", "pay", pay, "pay()")
    order = retry(policy, name="order")(call)

    with suppress(ConnectionError):
        sequence.between("client", "order", order, "order()")()
