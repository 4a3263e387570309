"""Jobs that are retried for longer than a process lives.

A policy whose schedule lasts days needs a job engine: one of `retrykit.integrations`
(dbos, celery, procrastinate). This package has the parts that are independent of the
engine: the envelope that a job carries, a single attempt, the engine's capabilities.

An engine stores the envelope of each job, and wakes the job when it is due. Then

* a job whose envelope is invalid, or whose task is unknown, is stored as dead, with
  the error: it would fail each time;
* a job that is early, by `Envelope.time_left`, waits on with the envelope of
  `Envelope.rescheduled`: in several hops if the engine cannot hold it for so long;
* else one attempt is made by `Job.attempt`, and its envelope is stored before the
  message is acknowledged: if the worker is killed in between, the attempt is
  repeated under the same idempotency key.
"""

from retrykit.durable.engine_capabilities import Capabilities
from retrykit.durable.envelope import Envelope, EnvelopeStatus
from retrykit.durable.job import Job
from retrykit.durable.job_attempt import JobAttempt, JobFailed, idempotency_key
from retrykit.durable.job_report import JobReport

__all__ = ["Capabilities", "Envelope", "Job", "JobAttempt", "JobFailed", "JobReport"]
__all__ += ["EnvelopeStatus", "idempotency_key"]
