"""The job that every engine is given: it fails as its plan says.

It runs in processes of their own, which are killed in the middle of it. What it
was asked to do is in a folder, and so is what it did.
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
    # Delays that every engine can hold, and one above most visibility timeouts.
    "patient": Policy(schedule=[1, 1, 1, 1, 1, 1], seed=7, name="hosts", **_ENDLESS),
    # Time enough to kill a worker while the job waits.
    "slow": Policy(schedule=[4] * 3, seed=7, name="hosts", **_ENDLESS),
    "longer": Policy(schedule=[1, 9, 1], seed=7, name="hosts", **_ENDLESS),
    # What "patient" became in a later version of the code.
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
    """The policy that the environment asks for."""
    return POLICIES[os.environ.get(POLICY, "patient")]


def verify(plan):
    """Fail as the plan says: a name of a file with it.

    Args:
        plan: ``fails``, how many attempts fail; ``slow``, how many seconds which
            attempts take; ``raises``, what the last one of them raises; ``value``,
            what is returned.
    """
    folder = Path(os.environ[FOLDER])
    told = json.loads((folder / f"{plan}.json").read_text())
    attempt = current_state().attempt
    # A worker leads a session, and all the processes that it starts are of it.
    worker = os.getsid(0)
    _note(folder / "runs", f"{time.time():.3f} {worker} {idempotency_key()}")
    time.sleep(told.get("slow", {}).get(str(attempt), 0))
    _note(folder / "ends", f"{time.time():.3f} {worker} {idempotency_key()}")
    if attempt <= told.get("fails", 0):
        _fail(told.get("raises", {}).get(str(attempt)), attempt)
    return told.get("value", "verified")


async def averify(plan):
    """The same as a coroutine function."""
    return verify(plan)


def _fail(what, attempt):
    error = ConnectionError(f"attempt {attempt}: connection refused")
    if what == "kill":
        raise GiveUp(error)
    if what is not None:
        raise RetryAfter(what, error)
    raise error


def _note(path, line):
    # One write at the end of the file, so that lines of several processes are whole.
    with path.open("a") as file:
        file.write(line + "\n")
