"""Jobs that are carried through JSON from attempt to attempt, as engines do."""

import asyncio
import json

from retrykit import Policy, schedules as s
from retrykit._internal.clocks import wall
from retrykit.durable import Envelope, Job
from retrykit.testing import virtual_time

__all__ = ["HOURLY", "PATIENT", "Made", "carried", "failed", "refuse", "through_json"]

PATIENT = Policy(schedule=s.constant("1h"), max_attempts=76, max_elapsed=None)
HOURLY = Policy(schedule=["1h"] * 3, max_elapsed=None, on=ConnectionError, name="hosts")


def refuse(_host="example.com"):
    raise ConnectionError("connection refused")


def through_json(envelope):
    text = json.dumps(envelope.to_dict(), allow_nan=False)
    return Envelope.from_dict(json.loads(text))


def carried(job, envelope, clock, args=()):
    """Make the attempt that is due, when it is due, and keep what came of it."""
    clock.sleep(max(envelope.time_left(wall()), 0.0))
    if job.awaited:
        with asyncio.Runner(loop_factory=clock.new_event_loop) as runner:
            came = runner.run(job.aattempt(envelope, args, {}))
    else:
        came = job.attempt(envelope, args, {})
    return came.replace(envelope=through_json(came.envelope))


def failed(times, policy=PATIENT, fn=refuse):
    """The envelope of a job that has failed so often, at the right times."""
    job = Job(fn, policy, "verify")
    envelope = job.envelope("job-7")
    with virtual_time() as clock:
        for _ in range(times):
            envelope = carried(job, envelope, clock).envelope
    return envelope


class Made:
    """A job of either colour, and the attempts that are made of it."""

    def __init__(self, colour, fn, policy=HOURLY):
        async def coroutine(*args, **kwargs):
            return fn(*args, **kwargs)

        self.job = Job(coroutine if colour == "awaited" else fn, policy, "verify")
        self.envelope = self.job.envelope("job-7")

    def __call__(self, *args):
        with virtual_time() as clock:
            return carried(self.job, self.envelope, clock, args)

    def once(self):
        """Make an attempt, and keep nothing of it."""
        if self.job.awaited:
            return asyncio.run(self._once())
        return self.job.attempt(self.envelope, [], {})

    async def _once(self):
        # Not as the result of a task, which the loop keeps beside its frames.
        await self.job.aattempt(self.envelope, [], {})
