"""Write the loop yourself, and take only the delays from a policy.

`Backoff` is for code that a decorator does not fit, such as a connection that
is kept for months: it fails now and then, and each time that it works again
the delays start afresh.

Prints::

    failed, next in 0.01 s
    failed, next in 0.02 s
    received: good morning
    failed, next in 0.01 s
    received: good evening
    failed, next in 0.01 s
    failed, next in 0.02 s
    failed, next in 0.04 s
    failed, and no retry any more
"""

import time

from retrykit import Policy
from retrykit.execution.backoff import STOP, Backoff
from retrykit.schedules import exponential

# What the connection does: a message arrives, or there is none.
LINE = [None, None, "good morning", None, "good evening", None, None, None, None]


def main() -> None:
    """Receive until the line has been dead for too long."""
    backoff = Backoff(Policy(schedule=exponential("10ms").take(3)))
    for message in LINE:
        if message is not None:
            print(f"received: {message}")
            backoff.reset()
            continue
        delay = backoff.next()
        if delay is STOP:
            print("failed, and no retry any more")
            break
        print(f"failed, next in {delay} s")
        time.sleep(delay)


if __name__ == "__main__":
    main()
