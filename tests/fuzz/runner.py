"""Runs inputs, in as many processes as there are processors.

Every input has a random generator of its own, seeded by the run's seed, the
target's name and the input's number: it is the same one in every run.
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
from retrykit.state.records import safe_str
from tests.fuzz.tally import Fault, Tally

__all__ = ["Hung", "run", "run_chunk", "run_one", "shown"]

_PACKAGE = Path(retrykit.__file__).parent
_CHUNK = 250
_MEMORY = 4 * 2**30
_HOUR = 3600.0
_PATIENCE = 10
"""An input is ended after so many times its limit, by the wall clock."""


class Hung(BaseException):
    """An input took so long that it was ended. No `except Exception` catches it."""


def run(targets, count, seed, limit, processes):
    """Run inputs of some targets, and return a tally of each by its name.

    Args:
        targets: What is run.
        count: How many inputs in all, about. Count, >= 1.
        seed: An integer; the same one gives the same inputs.
        limit: How long an input may take. Seconds of the processor.
        processes: How many processes. Count, >= 1.
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
    """Yield a target and the numbers of some inputs, until there are enough."""
    shares = sum(target.share for target in targets)
    for target in targets:
        # One without a share runs only where it is named.
        own = count * target.share // shares if shares else count // len(targets)
        for start in range(0, own, _CHUNK):
            yield target, range(start, min(start + _CHUNK, own))


def _prepare(folder):
    """Make a process ready: a folder for its files, and a limit of its memory."""
    os.chdir(tempfile.mkdtemp(dir=folder))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    logger = logging.getLogger("retrykit")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False


def _work(target, numbers, seed, limit):
    # Code in C that does not return runs no signal handler: it ends the process.
    faulthandler.dump_traceback_later(_HOUR, exit=True)
    tally = run_chunk(target, numbers, seed, limit)
    faulthandler.cancel_dump_traceback_later()
    return tally


def run_chunk(target, numbers, seed, limit):
    """Run some inputs of a target, and return a tally of them.

    Args:
        target: What is run.
        numbers: Those of the inputs. Counts, >= 0.
        seed: That of the run.
        limit: How long an input may take. Seconds of the processor.
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
            told = f"{type(outcome).__name__}: {safe_str(outcome)}"
            tally.add_fault(_cause(outcome), _fault(number, given, told))
        elif took > limit:
            told = f"took {took:.2f} s of the processor"
            tally.add_fault("slow", _fault(number, given, told))
        elif outcome == "read":
            tally.read += 1
        else:
            tally.refused += 1
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
        "read", "refused", or the error that is a fault.
    """
    before = signal.signal(signal.SIGALRM, _end_input)
    try:
        signal.setitimer(signal.ITIMER_REAL, limit * _PATIENCE, 1.0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            outcome = _outcome(target, given, random)
    except (Exception, Hung) as error:  # noqa: BLE001  every one is an outcome
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
        assert str(error), "an error without a text"
        return "refused"
    target.use(value, random)
    return "read"


def _cause(error):
    """Return the type of an error, and the last line of retrykit that it passed."""
    kind = type(error).__name__
    if error.__traceback__ is None or isinstance(error, Hung):
        return kind
    lines = [
        (Path(frame.f_code.co_filename), line)
        for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    own = [each for each in lines if each[0].is_relative_to(_PACKAGE)]
    path, line = (own or lines)[-1]
    place = path.relative_to(_PACKAGE) if own else path.name
    return f"{kind} at {place}:{line}"


def _fault(number, given, told):
    printed = shown(given)
    return Fault(number, len(printed), _cut(printed), _cut(ascii(told)[1:-1]))


def shown(given):
    """Return an input as ASCII; of the integers that Python does not print, a word."""
    try:
        return ascii(given)
    except ValueError:
        return f"<{type(given).__name__} with an integer of thousands of digits>"


def _cut(told, longest=600):
    return told if len(told) <= longest else f"{told[:longest]}... ({len(told)})"


def run_one(target, seed, number, limit):
    """Run one input, print what came of it, and return the exit status."""
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
