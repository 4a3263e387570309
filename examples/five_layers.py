"""Retry in five nested layers, without multiplying the attempts.

Each layer makes up to three attempts. When the innermost gives up, the layers around
it do not retry its error, and log a warning the first time. With ``nested="retry"``
they do, and each attempt of a layer becomes three attempts of the layer below. Time is
virtual, so nothing waits.

Prints::

    storage: not retried, since database, which is retried inside it, gave up; ...
    catalog: not retried, since database, which is retried inside it, gave up; ...
    shop: not retried, since database, which is retried inside it, gave up; ...
    gateway: not retried, since database, which is retried inside it, gave up; ...
    nested='respect': called 3 times in 3 s
      retrykit: gave up after 1 attempt in 3 s: nested call database gave up
      after 3 attempts in 3 s: the schedule has ended
      gateway: nested
        attempt 1, ConnectionError: connection refused
      shop: nested
        attempt 1, ConnectionError: connection refused
      catalog: nested
        attempt 1, ConnectionError: connection refused
      storage: nested
        attempt 1, ConnectionError: connection refused
      database: schedule_ended
        attempt 1, ConnectionError: connection refused
        attempt 2, ConnectionError: connection refused
        attempt 3, ConnectionError: connection refused
    nested='retry': called 243 times in 363 s
      retrykit: gave up after 3 attempts in 6 min 3 s: the schedule has ended
      gateway: schedule_ended
        attempt 1, ConnectionError: connection refused
        attempt 2, ConnectionError: connection refused
        attempt 3, ConnectionError: connection refused
"""

import logging
import sys
from collections.abc import Callable
from textwrap import wrap

from retrykit import Policy, retry, state_of
from retrykit.testing import ScriptedFunction, virtual_time

POLICY = Policy(on=ConnectionError, schedule=[1, 2])
LAYERS = ["database", "storage", "catalog", "shop", "gateway"]


def add_layers(call: Callable[[], object], policy: Policy) -> Callable[[], object]:
    """Wrap a function in all layers, the first one innermost."""
    for layer in LAYERS:
        call = retry(policy, name=layer)(call)
    return call


def print_history(error: ConnectionError) -> None:
    """Print the history of the call that raised an error, and of those inside it."""
    for line in wrap(error.__notes__[-1], 72):
        print(f"  {line}")
    layer = state_of(error)
    while layer is not None:
        print(f"  {layer.name}: {layer.stop_reason}")
        for failure in layer.failures:
            print(f"    attempt {failure.attempt}, {failure.describe()}")
        layer = layer.nested_state


def main() -> None:
    """Call a dependency that is down, with the default setting and without it."""
    logging.basicConfig(format="%(message)s", stream=sys.stdout)
    # The history shows the retries.
    logging.getLogger("retrykit.retries").setLevel("ERROR")
    for policy in POLICY, POLICY.replace(nested="retry"):
        dependency = ScriptedFunction([ConnectionError("connection refused"), ...])
        with virtual_time() as clock:
            try:
                add_layers(dependency, policy)()
            except ConnectionError as error:
                called = f"called {len(dependency.calls)} times in {clock.now():g} s"
                print(f"nested={policy.nested!r}: {called}")
                print_history(error)


if __name__ == "__main__":
    main()
