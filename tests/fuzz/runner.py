"""Runs inputs, in as many processes as there are processors.

Every input has its own random generator, seeded by the run's seed, the target's
name and the input's number, so that it is the same in every run.
"""

import contextlib
import faulthandler
import logging
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import Random

import retrykit
from retrykit import ConfigError
from retrykit._internal.error_texts import safe_str
from tests.fuzz.tally import Fault, Tally

__all__ = ["Hung", "run", "run_chunk", "run_one", "shown"]

_PACKAGE = Path(retrykit.__file__).parent
_CHUNK = 250
_MEMORY = 4 * 2**30
_HOUR = 3600.0
_TIMEOUT_FACTOR = 10
"""An input is interrupted after this multiple of its limit, by the wall clock."""


class Hung(BaseException):
    """An input was interrupted. It is no Exception, so that nothing catches it."""


def run(targets, count, seed, limit, processes):
    """Run inputs of some targets, and return a tally of each by its name.

    Args:
        targets: The targets to run.
        count: The approximate number of inputs in total. Count, >= 1.
        seed: An integer; the same one gives the same inputs.
        limit: How long an input may take, in seconds of CPU time.
        processes: The number of processes. Count, >= 1.
    """
    tallies = {target.name: Tally() for target in targets}
    chunks = [*_chunks(targets, count)]
    with (
        tempfile.TemporaryDirectory(prefix="fuzz") as folder,
        ProcessPoolExecutor(processes, None, _prepare, (folder,)) as pool,
    ):
        futures = [pool.submit(_work, *chunk, seed, limit) for chunk in chunks]
        for done, ((target, _), future) in enumerate(zip(chunks, futures, strict=True)):
            tallies[target.name].add(future.result())
            if sys.stderr.isatty():
                print(f"\r{100 * done // len(chunks)} %", end="\r", file=sys.stderr)
    return tallies


def _chunks(targets, count):
    """Yield a target and the numbers of some inputs, until all are assigned."""
    shares = sum(target.share for target in targets)
    for target in targets:
        # A target without a share runs only if it is named.
        ours = count * target.share // shares if shares else count // len(targets)
        for start in range(0, ours, _CHUNK):
            yield target, range(start, min(start + _CHUNK, ours))


def _prepare(folder):
    """Prepare a process: a folder for its files, and a memory limit."""
    os.chdir(tempfile.mkdtemp(dir=folder))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    logger = logging.getLogger("retrykit")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False


def _work(target, numbers, seed, limit):
    # While code in C does not return, no signal handler runs: end the process.
    faulthandler.dump_traceback_later(_HOUR, exit=True)
    tally = run_chunk(target, numbers, seed, limit)
    faulthandler.cancel_dump_traceback_later()
    return tally


def run_chunk(target, numbers, seed, limit):
    """Run some inputs of a target, and return a tally of them.

    Args:
        target: The target to run.
        numbers: The numbers of the inputs. Counts, >= 0.
        seed: The seed of the run.
        limit: How long an input may take, in seconds of CPU time.
    """
    tally = Tally()
    for number in numbers:
        random, given = _drawn(target, seed, number)
        start = time.thread_time()
        outcome = _attempt(target, given, random, limit)
        took = time.thread_time() - start
        tally.inputs += 1
        tally.slowest = max(tally.slowest, took)
        if isinstance(outcome, BaseException):
            description = f"{type(outcome).__name__}: {safe_str(outcome)}"
            tally.add_fault(_cause(outcome), _fault(number, given, description))
        elif took > limit:
            description = f"took {took:.2f} s of CPU time"
            tally.add_fault("slow", _fault(number, given, description))
        elif outcome == "read":
            tally.read += 1
        else:
            tally.rejected += 1
    return tally


def _drawn(target, seed, number):
    """Return an input, and the random generator that it was drawn from."""
    random = Random(f"{seed}/{target.name}/{number}")
    try:
        return random, target.draw(random)
    except Exception as error:
        error.add_note(f"drawing input {number} of {target.name}")
        raise


def _attempt(target, given, random, limit):
    """Run one input.

    Returns:
        "read", "rejected", or the error that is a fault.
    """
    before = signal.signal(signal.SIGALRM, _end_input)
    try:
        signal.setitimer(signal.ITIMER_REAL, limit * _TIMEOUT_FACTOR, 1.0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            outcome = _outcome(target, given, random)
    except (Exception, Hung) as error:  # noqa: BLE001  any error is an outcome
        return error
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return caught[0].message if caught else outcome


def _end_input(_signal, _frame):
    raise Hung


def _outcome(target, given, random):
    try:
        value = target.read(given)
    except ConfigError as error:
        assert str(error), "an error without a message"
        return "rejected"
    target.use(value, random)
    return "read"


def _cause(error):
    """Return the type of an error, and the last line of retrykit in its traceback."""
    kind = type(error).__name__
    if error.__traceback__ is None or isinstance(error, Hung):
        return kind
    lines = [
        (Path(frame.f_code.co_filename), line)
        for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    ours = [each for each in lines if each[0].is_relative_to(_PACKAGE)]
    path, line = (ours or lines)[-1]
    place = path.relative_to(_PACKAGE) if ours else path.name
    return f"{kind} at {place}:{line}"


def _fault(number, given, description):
    printed = shown(given)
    return Fault(number, len(printed), _cut(printed), _cut(ascii(description)[1:-1]))


def shown(given):
    """Return the repr of an input in ASCII; a placeholder if Python cannot print it."""
    try:
        return ascii(given)
    except ValueError:
        return f"<{type(given).__name__} with an integer of thousands of digits>"


def _cut(description, longest=600):
    return (
        description
        if len(description) <= longest
        else f"{description[:longest]}... ({len(description)})"
    )


def run_one(target, seed, number, limit):
    """Run one input, print its outcome, and return the exit status."""
    with tempfile.TemporaryDirectory(prefix="fuzz") as folder, contextlib.chdir(folder):
        random, given = _drawn(target, seed, number)
        print(shown(given))
        start = time.thread_time()
        outcome = _attempt(target, given, random, limit)
        took = time.thread_time() - start
    failed = isinstance(outcome, BaseException)
    if failed:
        traceback.print_exception(outcome)
    print(f"{'wrong' if failed else outcome}, {took * 1000:.1f} ms")
    return int(failed or took > limit)
