"""An order is stored, and its answer is lost; the retry has the same key."""

from docs._site.sequences import Sequence
from retrykit import Policy, retry

PARTIES = "client", "retrykit", "server"


def main(sequence: Sequence) -> None:
    """Order once, over a connection that loses the first answer."""
    orders: dict[str, int] = {}

    def store(key: str) -> str:
        if key in orders:
            return f"order {orders[key]}"
        orders[key] = len(orders) + 1
        sequence.note("server", f"stores order {orders[key]}")
        raise ConnectionError

    send = sequence.between("retrykit", "server", store, "POST, key {0}")
    policy = Policy(on=ConnectionError, schedule=["1s", "2s"])
    order = sequence.between("client", "retrykit", retry(policy)(send), "order({0})")
    order("b71")
