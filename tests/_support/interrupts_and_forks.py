"""Stress tests: ``python -m tests._support.interrupts_and_forks``.

An interrupt is an error that a signal handler raises, as Ctrl-C does, between
any two instructions of a loop of short calls. A fork happens while other threads
use everything that threads share. Nothing may be swallowed, left behind or hang.
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
    """Raised by the signal handler."""


_quick = retry(_TWICE)(lambda: 1)
_observed = retry(_TWICE, observers=[lambda event: None])(lambda: 1)


@retry(_TWICE)
def _failing() -> int:
    if current_state().attempt < 3:
        raise OSError
    return 1


_JOB = Job(_failing, _TWICE.replace(schedule=["1h"], max_elapsed=None), "job")


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
    "function that is observed": _observed,
    "function that fails": _failing,
    "function in a function": _nested,
    "block": _block,
    "block that fails": _failing_block,
    "block in a block": _nested_block,
    "durable attempt": _durable,
}


def _call_is_left() -> bool:
    """Return whether this thread is still recorded as inside of a call."""
    try:
        current_state()
    except LookupError:
        return False
    return True


def interrupts(call: Callable[[], object], times: int, seed: int) -> str:
    """Interrupt a loop of calls; return the fault, or an empty string.

    Args:
        call: The call of the loop.
        times: The number of interrupts.
        seed: Seed of the time before each interrupt, up to 300 microseconds.
    """
    chance, raised = random.Random(seed), []  # noqa: S311  not a secret

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
            if _call_is_left():
                return f"a call is left current after interrupt {caught}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    if caught != len(raised):
        return f"{len(raised) - caught} of {len(raised)} interrupts were swallowed"
    if _nested() != 2:
        return "calls are not retried any more"
    return ""


def _use_shared_state() -> None:
    """Use everything that threads share."""
    with observe(lambda event: None), limit_retries(max_attempts=2, process_wide=True):
        _quick()
    with disable_retries(), suppress(OSError):
        _failing()
    with virtual_time(), record(process_wide=True):
        _quick()


def forks(times: int, threads: int = 4) -> str:
    """Fork while threads use shared state; return the fault, or an empty string.

    Args:
        times: The number of children, one after the other.
        threads: The number of threads that use shared state meanwhile.
    """
    over = threading.Event()
    before = sys.getswitchinterval()

    def keep_using() -> None:
        while not over.is_set():
            # Process-wide overrides may be closed in any order.
            with suppress(Exception):
                _use_shared_state()

    workers = [threading.Thread(target=keep_using) for _ in range(threads)]
    for worker in workers:
        worker.start()
    sys.setswitchinterval(1e-6)
    try:
        for number in range(1, times + 1):
            child = os.fork()
            if not child:
                signal.alarm(10)
                with suppress(Exception):
                    _use_shared_state()
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
    program = "python -m tests._support.interrupts_and_forks"
    parser = argparse.ArgumentParser(prog=program, description=__doc__)
    parser.add_argument("--interrupts", type=int, default=10_000, metavar="N")
    parser.add_argument("--forks", type=int, default=2_000, metavar="N")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    wrong = 0
    each = -(-options.interrupts // len(CALLS))
    for name, call in CALLS.items():
        fault = interrupts(call, each, options.seed)
        print(f"{each:,} interrupts of a {name}: {fault or 'nothing is wrong'}")
        wrong += bool(fault)
    fault = forks(options.forks)
    print(f"{options.forks:,} forks: {fault or 'nothing is wrong'}")
    return 1 if wrong or fault else 0


if __name__ == "__main__":
    sys.exit(_main())
