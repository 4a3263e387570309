"""Interrupt a call in one process, and resume it in another.

The process is interrupted in the second attempt of a call. The state of the call is
stored as JSON, and another process makes that attempt again. Attempt numbers, errors,
elapsed time and delays continue from there.

Prints, where ``...`` is the id of a process or a duration::

    process ...: attempt 1, errors so far: 0
    process ...: attempt 2, errors so far: 1
    process ...: deliver was cancelled after 2 attempts in ...
    process ...: resuming after OSError: nobody at home
    process ...: attempt 2, errors so far: 1
    process ...: attempt 3, errors so far: 2
    process ...: the letter is delivered
"""

import json
import os
from multiprocessing import get_context, parent_process

from retrykit import RetryState, current_state, resume, retry, state_of
from retrykit.schedules import exponential

INTERRUPTED_AT = 2
DELIVERED_AT = 3


def say(text: str) -> None:
    """Print a line with the id of this process."""
    print(f"process {os.getpid()}: {text}", flush=True)


@retry(on=OSError, schedule=exponential("20ms").full_jitter(), max_attempts=4)
def deliver(letter: str) -> str:
    """Deliver a letter at the third attempt."""
    state = current_state()
    say(f"attempt {state.attempt}, errors so far: {len(state.errors)}")
    if state.attempt == INTERRUPTED_AT and parent_process() is None:
        raise KeyboardInterrupt  # Ctrl-C, or a new version is deployed
    if state.attempt < DELIVERED_AT:
        msg = "nobody at home"
        raise OSError(msg)
    return f"{letter} is delivered"


def continue_call(saved: str) -> None:
    """Make the remaining attempts."""
    state = RetryState.from_dict(json.loads(saved))
    say(f"resuming after {state.errors[-1]}")
    say(resume(deliver, state)("the letter"))


def main() -> None:
    """Interrupt the call, and let another process resume it."""
    try:
        deliver("the letter")
    except KeyboardInterrupt as interruption:
        state = state_of(interruption)
        if state is None:  # not raised by a retried call
            raise
        say(f"{state.name} {state.describe()}")
        saved = json.dumps(state.to_dict())
        other = get_context("spawn").Process(target=continue_call, args=[saved])
        other.start()
        other.join()


if __name__ == "__main__":
    main()
