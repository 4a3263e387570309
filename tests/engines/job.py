"""The job that runs on every engine, and fails as planned.

It runs in worker processes, which tests kill. A folder holds the plans of jobs, and
the records of their attempts.
"""

import json
import os
import time
from pathlib import Path

from retrykit import GiveUp, Policy, RetryAfter, current_state, presets, schedules as s
from retrykit.durable import idempotency_key

__all__ = ["FOLDER", "POLICIES", "averify", "policy", "verify"]

FOLDER = "RETRYKIT_ENGINE_FOLDER"
POLICY = "RETRYKIT_ENGINE_POLICY"

_ENDLESS = {"max_attempts": None, "max_elapsed": None, "on": ConnectionError}

POLICIES = {
    # Delays that every engine can hold.
    "patient": Policy(schedule=[1, 1, 1, 1, 1, 1], seed=7, name="hosts", **_ENDLESS),
    "few": Policy(schedule=[1], seed=7, name="hosts", **_ENDLESS),
    # Time enough to kill a worker while the job waits.
    "slow": Policy(schedule=[4] * 3, seed=7, name="hosts", **_ENDLESS),
    "longer": Policy(schedule=[1, 9, 1], seed=7, name="hosts", **_ENDLESS),
    # "patient" in a later version of the code.
    "changed": Policy(schedule=[2] * 3, seed=7, name="hosts", **_ENDLESS),
    "renamed": Policy(schedule=[1] * 6, seed=7, name="others", **_ENDLESS),
    "jittered": Policy(
        schedule=s.constant(6).jitter(0.5).take(4), seed=7, name="hosts", **_ENDLESS
    ),
    "hostnames": presets.hostname_verification().replace(
        schedule=presets.hostname_verification().schedule * 1e-5,
        name="hosts",
        on=ConnectionError,
    ),
}


def policy():
    """Return the policy named in the environment."""
    return POLICIES[os.environ.get(POLICY, "patient")]


def verify(plan):
    """Fail as planned.

    Args:
        plan: The name of a JSON file: ``fails``, the number of attempts that fail;
            ``slow``, the seconds that attempts take, by their number; ``raises``, the
            delays that failures request, or "kill"; ``value``, the result; ``exits``,
            the number of the attempt that ends its process, or true for all of them.
    """
    folder = Path(os.environ[FOLDER])
    options = json.loads((folder / f"{plan}.json").read_text())
    attempt, exits = current_state().attempt, options.get("exits")
    # The session's leader is the worker; its child processes belong to the session.
    worker = os.getsid(0)
    _record(folder / "runs", f"{time.time():.3f} {worker} {idempotency_key()}")
    time.sleep(options.get("slow", {}).get(str(attempt), 0))
    if exits is True or exits == attempt:
        os._exit(9)
    _record(folder / "ends", f"{time.time():.3f} {worker} {idempotency_key()}")
    if attempt <= options.get("fails", 0):
        _fail(options.get("raises", {}).get(str(attempt)), attempt)
    return options.get("value", "verified")


async def averify(plan):
    """Fail as planned, as a coroutine function."""
    return verify(plan)


def _fail(what, attempt):
    error = ConnectionError(f"attempt {attempt}: connection refused")
    if what == "kill":
        raise GiveUp(error)
    if what is not None:
        raise RetryAfter(what, error)
    raise error


def _record(path, line):
    # One write in append mode, so that lines of several processes do not mix.
    with path.open("a") as file:
        file.write(line + "\n")
        file.flush()
        os.fsync(file.fileno())
