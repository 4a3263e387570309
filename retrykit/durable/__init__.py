"""Jobs that are attempted for longer than a process lives.

A policy whose schedule lasts days needs an engine that keeps its jobs: one of
`retrykit.integrations` (dbos, celery, procrastinate). What they share is here:
the envelope that a job carries, one attempt at a time, and what is asked of an
engine. It knows no engine.

An engine keeps the envelope of each job, and wakes the job up when it is due. Then

* an envelope that is refused, and a job that is not known, are kept as dead, with
  the error: they would be refused each time;
* a job that is woken up too early, by `Envelope.time_left`, waits on, as
  `Envelope.rescheduled` says: in hops, where it cannot be held for so long;
* else one attempt is made, by `Job.attempt`, and the envelope that comes of it is
  kept before the engine takes the attempt for made: who is killed in between
  makes it again, under the same key.
"""

from retrykit.durable.engine_capabilities import Capabilities
from retrykit.durable.envelope import Envelope, EnvelopeStatus
from retrykit.durable.job import Job
from retrykit.durable.job_attempt import JobAttempt, JobFailed, idempotency_key
from retrykit.durable.job_report import JobReport

__all__ = ["Capabilities", "Envelope", "Job", "JobAttempt", "JobFailed", "JobReport"]
__all__ += ["EnvelopeStatus", "idempotency_key"]
