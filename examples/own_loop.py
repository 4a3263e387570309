"""Write the loop yourself, and take only the delays from a policy.

`Backoff` is for code that a decorator does not fit, such as a connection that is kept
open for months. After each success the delays start again from the first.

Prints::

    failed, next in 0.01 s
    failed, next in 0.02 s
    received: good morning
    failed, next in 0.01 s
    received: good evening
    failed, next in 0.01 s
    failed, next in 0.02 s
    failed, next in 0.04 s
    failed, giving up
"""

import time

from retrykit import STOP, Backoff, Policy
from retrykit.schedules import exponential

# The messages of the connection; None is a failure.
MESSAGES = [None, None, "good morning", None, "good evening", None, None, None, None]


def main() -> None:
    """Receive messages until the schedule ends."""
    backoff = Backoff(Policy(schedule=exponential("10ms").take(3)))
    for message in MESSAGES:
        if message is not None:
            print(f"received: {message}")
            backoff.reset()
            continue
        delay = backoff.next()
        if delay is STOP:
            print("failed, giving up")
            break
        print(f"failed, next in {delay} s")
        time.sleep(delay)


if __name__ == "__main__":
    main()
