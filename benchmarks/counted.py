"""Calls whose instructions are counted, one row of the benchmark after another.

`benchmarks.instructions` runs it under callgrind, which ends a count and starts another
whenever libc's `ctermid` is called. The last two counts of a row are of a lap without
calls and of one of `CALLS` calls. Prints the number of the last one of each row, as
JSON.
"""

import gc
import json
import os
import sys
import traceback
from itertools import count

from benchmarks.calls import ROWS, no_sleep
from benchmarks.contenders import RETRYKIT, STATES, in_state

__all__ = ["CALLS"]

# As many as share a draw, so that the cost of a draw is in each count alike.
CALLS = 64
_WARM = 16

_counts = count(1)


def main() -> None:
    """Run each row in each state of the logs."""
    counted = []
    for state in STATES:
        for title in ROWS:
            with in_state(state), RETRYKIT.stub(no_sleep):
                try:
                    counted.append((state, title, _run(title)))
                except Exception:  # noqa: BLE001  this version has no such way
                    traceback.print_exc(file=sys.__stderr__)
    print(json.dumps(counted))


def _run(title: str) -> int:
    lap = ROWS[title](RETRYKIT)
    if lap is None:
        msg = f"retrykit must have a lap, got none for {title!r}"
        raise ValueError(msg)
    lap(_WARM)
    gc.collect()
    _end_count()
    lap(0)
    _end_count()
    lap(CALLS)
    return _end_count()


def _end_count() -> int:
    os.ctermid()
    return next(_counts)


if __name__ == "__main__":
    main()
