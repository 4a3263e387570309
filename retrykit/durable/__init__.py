"""Jobs whose retries outlive the process that started them.

A policy whose schedule lasts days needs a job engine: one of `retrykit.integrations`
(dbos, celery, procrastinate). This package has the parts that are independent of the
engine: the envelope that a job carries, a single attempt, the engine's capabilities,
and the reports, selection and counts of jobs.

An engine stores the envelope of each job, and wakes the job when it is due, or earlier.
Then:

* If the envelope is invalid or the task is unknown, the job is stored as dead, with
  the error, since every attempt would fail.
* If the job is early (`Envelope.time_left`), it waits again, with the envelope that
  `Envelope.rescheduled` returns. A delay that is too long for the engine takes
  several such hops.
* Otherwise `Job.attempt` makes one attempt, and the new envelope is stored before the
  attempt is acknowledged. If the worker is killed earlier, the attempt is repeated
  under the same idempotency key.
"""

from retrykit.durable._engine_capabilities import Capabilities
from retrykit.durable._envelope import Envelope, EnvelopeStatus
from retrykit.durable._job import Job
from retrykit.durable._job_attempt import JobAttempt, JobFailed, idempotency_key
from retrykit.durable._job_engine import JobEngine
from retrykit.durable._job_report import JobReport
from retrykit.durable._job_selection import JobCounts, JobFilters, count_jobs

__all__ = ["Capabilities", "Envelope", "EnvelopeStatus", "Job", "JobAttempt"]
__all__ += ["JobCounts", "JobEngine", "JobFailed", "JobFilters", "JobReport"]
__all__ += ["count_jobs", "idempotency_key"]
