"""Storms of interrupts and forks: ``python -m tests._support.storms``.

An interrupt is an error that a signal handler raises, as Ctrl-C does, between
any two instructions of a loop of short calls. A fork happens while other
threads are in the midst of everything that threads share. Whatever they hit,
nothing is swallowed, nothing is left behind and nothing hangs.
"""

import argparse
import os
import random
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

from retrykit import Policy, current_state, observe, retry, retrying
from retrykit.durable import Job
from retrykit.testing import disable_retries, limit_retries, record, virtual_time

__all__ = ["CALLS", "forks", "interrupts"]

_TWICE = Policy(schedule=[0, 0], on=OSError, max_elapsed=60)


class _Interrupt(BaseException):
    """What the signal handler raises."""


_quick = retry(_TWICE)(lambda: 1)
_heard = retry(_TWICE, observers=[lambda event: None])(lambda: 1)


@retry(_TWICE)
def _failing() -> int:
    if current_state().attempt < 3:
        raise OSError
    return 1


_JOB = Job(_failing, _TWICE.replace(schedule=["1h"]), "job")


@retry(_TWICE)
def _nested() -> int:
    return _quick() + _failing()


def _block() -> None:
    for turn in retrying(_TWICE):
        with turn:
            pass


def _failing_block() -> None:
    for turn in retrying(_TWICE):
        with turn:
            if turn.number < 3:
                raise OSError


def _nested_block() -> None:
    for turn in retrying(_TWICE):
        with turn:
            _block()
            _quick()


def _durable() -> None:
    _JOB.attempt(_JOB.envelope("job"), [], {})


CALLS: dict[str, Callable[[], object]] = {
    "function": _quick,
    "function that is observed": _heard,
    "function that fails": _failing,
    "function in a function": _nested,
    "block": _block,
    "block that fails": _failing_block,
    "block in a block": _nested_block,
    "durable attempt": _durable,
}


def _stands() -> bool:
    """Return whether this thread is said to be inside of a call, though it is not."""
    try:
        current_state()
    except LookupError:
        return False
    return True


def interrupts(call: Callable[[], object], times: int, seed: int) -> str:
    """Interrupt a loop of calls, and return what is wrong afterwards, or nothing.

    Args:
        call: What is called again and again.
        times: How often it is interrupted.
        seed: Of the time before each interrupt: up to 300 microseconds.
    """
    chance, raised = random.Random(seed), []  # noqa: S311  no secret is drawn

    def interrupt(*_: object) -> None:
        raised.append(1)
        raise _Interrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    caught = 0
    try:
        for _ in range(times):
            try:
                signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-6, 3e-4))
                while True:
                    call()
            except _Interrupt:
                caught += 1
            if _stands():
                return f"a call is left current after interrupt {caught}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    if caught != len(raised):
        return f"{len(raised) - caught} of {len(raised)} interrupts were swallowed"
    if _nested() != 2:
        return "calls are not retried any more"
    return ""


def _share() -> None:
    """Go through everything that threads share."""
    with observe(lambda event: None), limit_retries(max_attempts=2, process_wide=True):
        _quick()
    with disable_retries(), suppress(OSError):
        _failing()
    with virtual_time(), record(process_wide=True):
        _quick()


def forks(times: int, threads: int = 4) -> str:
    """Fork while threads share everything; return what is wrong, or nothing.

    Args:
        times: How many children there are, one after the other.
        threads: How many threads go through everything meanwhile.
    """
    over = threading.Event()
    before = sys.getswitchinterval()

    def keep_sharing() -> None:
        while not over.is_set():
            # Threads that hold something everywhere may close it in any order.
            with suppress(Exception):
                _share()

    workers = [threading.Thread(target=keep_sharing) for _ in range(threads)]
    for worker in workers:
        worker.start()
    sys.setswitchinterval(1e-6)
    try:
        for number in range(1, times + 1):
            child = os.fork()
            if not child:
                signal.alarm(10)
                with suppress(Exception):
                    _share()
                os._exit(7)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if status != 7:
                return f"child {number} ended with {status}"
    finally:
        over.set()
        sys.setswitchinterval(before)
        for worker in workers:
            worker.join()
    return ""


def _main() -> int:
    program = "python -m tests._support.storms"
    asked = argparse.ArgumentParser(prog=program, description=__doc__)
    asked.add_argument("--interrupts", type=int, default=10_000, metavar="N")
    asked.add_argument("--forks", type=int, default=2_000, metavar="N")
    asked.add_argument("--seed", type=int, default=7)
    told = asked.parse_args()
    wrong = 0
    each = -(-told.interrupts // len(CALLS))
    for name, call in CALLS.items():
        fault = interrupts(call, each, told.seed)
        print(f"{each:,} interrupts of a {name}: {fault or 'nothing is wrong'}")
        wrong += bool(fault)
    fault = forks(told.forks)
    print(f"{told.forks:,} forks: {fault or 'nothing is wrong'}")
    return 1 if wrong or fault else 0


if __name__ == "__main__":
    sys.exit(_main())
