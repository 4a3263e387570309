"""What runs while a lock of retrykit is held.

A thread that waits for a lock while it holds another one can wait forever, if the
holder of the second wants the first. So nothing of others runs under a lock: no code of
the user, no logging, no import, no sleep. Each row is a lock, and all that is called
while it is held; a new call is a change to this table.
"""

import ast
import collections
import contextlib
import logging
import sys
import threading
import typing
from pathlib import Path

import pytest

import retrykit
from retrykit import Policy, Rule, current_state, retry, schedules
from retrykit._core.call import state_lock
from retrykit._internal import locks
from retrykit.budgets import FleetBudget, RatioBudget, Throttle, TokenBucket
from retrykit.testing import ScriptedFunction, virtual_time

PACKAGE = Path(retrykit.__file__).parent

UNDER_LOCKS = {
    # The record of a call at which several threads look; a fork waits for it.
    "_core/call.py": "_view ref",
    "_core/controller.py": "",
    "_core/nesting.py": "add len object",
    # The times of recent attempts, which a hedge keeps.
    "_core/hedge.py": "append int len max min sorted",
    # Whether a permit of another library's limiter is held.
    "limits/_adapted.py": "",
    # How many calls have given up.
    "_core/call_record.py": "",
    # The tokens of a budget. Its clock is one of retrykit.
    "budgets/_ratio.py": "_turn max",
    "budgets/_fleet.py": "min",
    "budgets/_throttle.py": "max min",
    "budgets/_token_bucket.py": "min",
    # The keys of a registry are hashed and compared: they must make no retried calls.
    "_internal/keyed_objects.py": "items len list move_to_end popitem setdefault",
    # The rate of a limit. Its clock is one of retrykit.
    "limits/_adaptive_rate.py": "Refusal _fill _until add after_call fill min now",
    # The state of a breaker, and its window. Its clock is one of retrykit.
    "limits/_circuit_breaker.py": "HalfOpen Isolated Open ProbeLease Refusal "
    "_count_call _count_probe _enter _is_slow _judge _new_closed _now _open _real_now "
    "count drop_expired id isinstance len min now opening_or pop total",
    # The times of a rate limit. Its clock is one of retrykit, too.
    "limits/_rate.py": "Refusal _next_time _read_clock _take _take_back len",
    # The calls that run and wait. Algorithms are called here: they are pure.
    "limits/_concurrency.py": "_grant _leave _queue_or_refuse _sample _start add "
    "discard is_waiting isinstance len",
    # The headers of which a value could not be read.
    "hints/_retry_after_header.py": "add clear len lower",
    # The failures of Redis, without I/O.
    "integrations/redis/_availability.py": "min",
    # When the jobs of a thread are due.
    "integrations/redis/_background_thread.py": "_now clear min values",
    # The tokens of a budget on Redis, without I/O.
    "integrations/redis/_local_ledger.py": "_is_paused _new_request _now _start_pause "
    "add min pay_locally",
    # The values of the labels of metrics.
    "integrations/_telemetry.py": "add len",
    # The histories that a report of pytest shows.
    "testing/pytest_plugin.py": "append id len pop values",
    "testing/_scripted_function.py": "append",
    # Virtual time: its clocks and what wakes its sleepers are those of retrykit.
    "testing/_scheduler.py": "Sleeper TrackedCall _after _changed _earliest _end "
    "_stalled _wake_due add any append cancel current_call get heappush holds_time id "
    "isinstance locked min move next now resume set suspend values wake wake_thread",
}


def names_of_calls(block):
    nodes = [node for each in block.body for node in ast.walk(each)]
    calls = [node.func for node in nodes if isinstance(node, ast.Call)]
    return {each.attr if isinstance(each, ast.Attribute) else each.id for each in calls}


def calls_under_locks(tree):
    """Return the names of what is called in each `with` block of a lock, or None."""
    found = None
    for node in ast.walk(tree):
        if isinstance(node, ast.With):
            held = [ast.unparse(item.context_expr) for item in node.items]
            if any(each.endswith("_lock") for each in held):
                found = (found or set()) | names_of_calls(node)
    return found


@pytest.mark.thorough
def test_the_table_has_all_that_is_called_under_a_lock():
    found = {}
    for file in PACKAGE.rglob("*.py"):
        calls = calls_under_locks(ast.parse(file.read_text("utf-8")))
        if calls is not None:
            found[file.relative_to(PACKAGE).as_posix()] = calls
    assert found == {name: {*row.split()} for name, row in UNDER_LOCKS.items()}


def is_held():
    """Return whether this thread holds a lock of retrykit."""
    owners = [*locks._living.values()]  # noqa: SLF001  there is no other way
    held = [state_lock, *(each._lock for each in owners)]  # noqa: SLF001
    return any(lock._is_owned() for lock in held)  # noqa: SLF001


# `cast`, dataclasses, `Counter` and `Event.set` wait for no other lock.
HARMLESS = (
    str(PACKAGE),
    "<string>",
    typing.__file__,
    collections.__file__,
    threading.__file__,
)


@contextlib.contextmanager
def found_under_locks():
    """Collect the files of code that runs while this thread holds a lock."""
    found = set()

    def profile(frame, event, _):
        if event == "call" and is_held():
            found.add(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield found
    finally:
        sys.setprofile(before)
        found -= {file for file in found if file.startswith(HARMLESS)}


def test_code_under_a_lock_is_found():
    with found_under_locks() as found, state_lock:
        logging.getLogger("retrykit")
    assert found == {logging.__file__}


def answer_anything(*_):
    """Answer as a condition, a hint, a delay, an observer or a fallback."""
    current_state()
    return 0.0


POLICIES = [
    Policy(),
    Policy(on=lambda error: bool(current_state())),
    Policy(hint=answer_anything, observers=[answer_anything], max_elapsed=9),
    Policy(rules=[Rule(on=OSError, schedule=[0])], redact=False),
    Policy(on_result=lambda result: current_state().attempt < 2),
    *(
        Policy(budget=budget, fallback=answer_anything)
        for budget in (
            RatioBudget(),
            FleetBudget(timeouts=lambda error: bool(current_state())),
            Throttle(),
            TokenBucket(costs=[(lambda error: bool(current_state()), 1)]),
            retrykit.budgets.Registry(TokenBucket)["host"],
        )
    ),
]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("virtual", [False, True])
def test_no_code_of_others_runs_under_a_lock(policy, virtual, monkeypatch):
    monkeypatch.setattr(logging.getLogger("retrykit.retries"), "_cache", {})
    policy = policy.replace(schedule=schedules.constant(0), max_attempts=3, name="call")
    clock = virtual_time() if virtual else contextlib.nullcontext()
    fails = ScriptedFunction([OSError, ExceptionGroup("both", [OSError()]), "done"])

    @retry(schedule=schedules.constant(0))
    def outer():
        current_state()
        return retry(policy)(fails)()

    with found_under_locks() as found, clock, contextlib.suppress(Exception):
        outer()
    assert found == set()
