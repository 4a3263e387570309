"""Durable jobs whose envelope goes through JSON between attempts, as on engines."""

import asyncio
import json

from retrykit import Policy, schedules as s
from retrykit._internal.clocks import wall
from retrykit.durable import Envelope, Job
from retrykit.testing import virtual_time

__all__ = [
    "HOURLY",
    "PATIENT",
    "JobHarness",
    "attempt_when_due",
    "fail_to_connect",
    "failed_envelope",
    "through_json",
]

PATIENT = Policy(schedule=s.constant("1h"), max_attempts=76)
HOURLY = Policy(schedule=["1h"] * 3, on=ConnectionError, name="hosts")


def fail_to_connect(_host="example.com"):
    raise ConnectionError("connection refused")


def through_json(envelope):
    text = json.dumps(envelope.to_dict(), allow_nan=False)
    return Envelope.from_dict(json.loads(text))


def attempt_when_due(job, envelope, clock, args=()):
    """Sleep until an attempt is due, make it, and store its envelope as JSON."""
    clock.sleep(max(envelope.time_left(wall()), 0.0))
    if job.awaited:
        with asyncio.Runner(loop_factory=clock.new_event_loop) as runner:
            outcome = runner.run(job.aattempt(envelope, args, {}))
    else:
        outcome = job.attempt(envelope, args, {})
    return outcome.replace(envelope=through_json(outcome.envelope))


def failed_envelope(times, policy=PATIENT, fn=fail_to_connect):
    """Return the envelope of a job after so many failures, each when it was due."""
    job = Job(fn, policy, "verify")
    envelope = job.envelope("job-7")
    with virtual_time() as clock:
        for _ in range(times):
            envelope = attempt_when_due(job, envelope, clock).envelope
    return envelope


class JobHarness:
    """A job of a sync or async function; calling it makes the first attempt."""

    def __init__(self, kind, fn, policy=HOURLY):
        async def coroutine(*args, **kwargs):
            return fn(*args, **kwargs)

        self.job = Job(coroutine if kind == "async" else fn, policy, "verify")
        self.envelope = self.job.envelope("job-7")

    def __call__(self, *args):
        with virtual_time() as clock:
            return attempt_when_due(self.job, self.envelope, clock, args)

    def attempt(self):
        """Make an attempt, and discard its outcome."""
        if self.job.awaited:
            return asyncio.run(self._attempt())
        return self.job.attempt(self.envelope, [], {})

    async def _attempt(self):
        # The outcome is no task result, which the event loop would keep alive.
        await self.job.aattempt(self.envelope, [], {})
