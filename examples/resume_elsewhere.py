"""Stop a call in one process, and go on with it in another.

The history of a call is data. Here a process is stopped in its second attempt;
the state of the call goes through JSON, and another process makes that attempt
again. The numbers, the errors, the time and the delays go on from there.

Prints, where ``...`` is the number of a process or a length of time::

    process ...: attempt 1, errors so far: 0
    process ...: attempt 2, errors so far: 1
    process ...: deliver was cancelled after 2 attempts in ...
    process ...: goes on after OSError: nobody at home
    process ...: attempt 2, errors so far: 1
    process ...: attempt 3, errors so far: 2
    process ...: the letter is delivered
"""

import json
import os
from multiprocessing import get_context, parent_process

from retrykit import RetryState, current_state, resume, retry, state_of
from retrykit.schedules import exponential

STOPPED_AT = 2
DELIVERED_AT = 3


def say(text: str) -> None:
    """Print a line at once, with the number of this process."""
    print(f"process {os.getpid()}: {text}", flush=True)


@retry(on=OSError, schedule=exponential("20ms").full_jitter(), max_attempts=4)
def deliver(letter: str) -> str:
    """Deliver a letter, which works at the third attempt."""
    state = current_state()
    say(f"attempt {state.attempt}, errors so far: {len(state.errors)}")
    if state.attempt == STOPPED_AT and parent_process() is None:
        raise KeyboardInterrupt  # Ctrl-C, or a new version is deployed
    if state.attempt < DELIVERED_AT:
        msg = "nobody at home"
        raise OSError(msg)
    return f"{letter} is delivered"


def go_on(saved: str) -> None:
    """Make the attempts that are left."""
    state = RetryState.from_dict(json.loads(saved))
    say(f"goes on after {state.errors[-1]}")
    say(resume(deliver, state)("the letter"))


def main() -> None:
    """Be stopped, and let another process go on."""
    try:
        deliver("the letter")
    except KeyboardInterrupt as stop:
        state = state_of(stop)
        if state is None:  # it came before the call or after it
            raise
        say(f"{state.name} {state.describe()}")
        saved = json.dumps(state.to_dict())
        other = get_context("spawn").Process(target=go_on, args=[saved])
        other.start()
        other.join()


if __name__ == "__main__":
    main()
