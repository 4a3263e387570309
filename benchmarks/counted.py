"""Calls whose instructions are counted, one row of the benchmark after another.

`benchmarks.instructions` runs it under callgrind, which ends a count and starts another
whenever libc's `ctermid` is called. The last two counts of a row are of a lap without
calls and of one with some calls. Prints that number of calls and that of the last
count, for each row, as JSON.
"""

import gc
import json
import os
import sys
import traceback
from itertools import count

from benchmarks.calls import ROWS, no_sleep
from benchmarks.contenders import RETRYKIT, STATES, State, in_state

_WARM = 16

_counts = count(1)


def main() -> None:
    """Run each row in each state of the logs."""
    counted = []
    for state in STATES:
        for title in ROWS:
            with in_state(state), RETRYKIT.stub(no_sleep):
                try:
                    calls = _calls(state, title)
                    counted.append((state, title, calls, _run(title, calls)))
                except Exception:  # noqa: BLE001  this version has no such way
                    traceback.print_exc(file=sys.__stderr__)
    print(json.dumps(counted))


def _calls(state: State, title: str) -> int:
    if title.endswith("success"):
        return 256
    # So many share a draw, unless retries are logged.
    return 64 if state == "quiet" else 32


def _run(title: str, calls: int) -> int:
    lap = ROWS[title](RETRYKIT)
    if lap is None:
        msg = f"retrykit must have a lap, got none for {title!r}"
        raise ValueError(msg)
    lap(_WARM)
    gc.collect()
    _end_count()
    lap(0)
    _end_count()
    lap(calls)
    return _end_count()


def _end_count() -> int:
    os.ctermid()
    return next(_counts)


if __name__ == "__main__":
    main()
