"""Retry on five layers over a dependency that is dead, and call it three times.

Each layer makes up to three attempts. An error with which one of them has given
up is not retried by those around it: they let it out, with what happened inside
of them. Without that guard, under ``nested="retry"``, each attempt of a layer is
three attempts of the layer below. Time is virtual, so nothing is waited for.

Prints::

    nested='respect': called 3 times in 3 s
      retrykit: gave up after 1 attempt in 3s: nested call database gave up
      after 3 attempts in 3s: the schedule has ended
      gateway: nested
        attempt 1, ConnectionError: nobody answers
      shop: nested
        attempt 1, ConnectionError: nobody answers
      catalogue: nested
        attempt 1, ConnectionError: nobody answers
      storage: nested
        attempt 1, ConnectionError: nobody answers
      database: schedule ended
        attempt 1, ConnectionError: nobody answers
        attempt 2, ConnectionError: nobody answers
        attempt 3, ConnectionError: nobody answers
    nested='retry': called 243 times in 363 s
      retrykit: gave up after 3 attempts in 6m3s: the schedule has ended
      gateway: schedule ended
        attempt 1, ConnectionError: nobody answers
        attempt 2, ConnectionError: nobody answers
        attempt 3, ConnectionError: nobody answers
"""

from collections.abc import Callable
from textwrap import wrap

from retrykit import Policy, retry, state_of
from retrykit.testing import ScriptedFunction, virtual_time

POLICY = Policy(on=ConnectionError, schedule=[1, 2], max_elapsed=None)
LAYERS = ["database", "storage", "catalogue", "shop", "gateway"]


def in_layers(call: Callable[[], object], policy: Policy) -> Callable[[], object]:
    """Return what makes a call through all layers, the first one innermost."""
    for layer in LAYERS:
        call = retry(policy, name=layer)(call)
    return call


def tell(error: ConnectionError) -> None:
    """Print what is recorded on an error of the call that gave up with it."""
    for line in wrap(error.__notes__[-1]):
        print(f"  {line}")
    layer = state_of(error)
    while layer is not None:
        print(f"  {layer.name}: {layer.stop_reason}")
        for failure in layer.failures:
            print(f"    attempt {failure.attempt}, {failure.describe()}")
        layer = layer.nested_state


def main() -> None:
    """Call a dead dependency with the guard, which is the default, and without."""
    for policy in POLICY, POLICY.replace(nested="retry"):
        dead = ScriptedFunction([ConnectionError("nobody answers"), ...])
        with virtual_time() as clock:
            try:
                in_layers(dead, policy)()
            except ConnectionError as error:
                called = f"called {len(dead.calls)} times in {clock.now():g} s"
                print(f"nested={policy.nested!r}: {called}")
                tell(error)


if __name__ == "__main__":
    main()
