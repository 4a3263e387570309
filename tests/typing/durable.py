# pyright: reportUnnecessaryTypeIgnoreComment=true
"""Types of durable jobs; checked, never run."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, assert_type

from retrykit import Failure, Policy, RetryState
from retrykit.durable import (
    Capabilities,
    Envelope,
    EnvelopeStatus,
    Job,
    JobAttempt,
    JobReport,
    idempotency_key,
)

POLICY = Policy()


def verify(host: str) -> bool:
    return bool(host)


async def averify(host: str) -> bool:
    return bool(host)


def jobs() -> None:
    job = Job(verify, POLICY)
    Job(averify, POLICY, "verify", ["former"])
    Job(averify, POLICY, name="verify", previous_names=("former",))
    assert_type(job.name, str)
    assert_type(job.policy, Policy)
    assert_type(job.fingerprint, str)
    assert_type(job.envelope("job-7"), Envelope)
    assert_type(job.envelope("job-7", run=2), Envelope)
    assert_type(idempotency_key(), str)
    Job(verify, "hosts")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Job(5, POLICY)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    job.envelope(7)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def attempts(job: Job, envelope: Envelope) -> None:
    came = job.attempt(envelope, ["example.com"], {"port": 443})
    assert_type(came, JobAttempt)
    assert_type(came.envelope, Envelope)
    assert_type(came.error, Exception | None)
    assert_type(await job.aattempt(envelope, (), {}), JobAttempt)
    job.attempt(envelope)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    came.result = 5  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]


def envelopes(envelope: Envelope) -> None:
    assert_type(envelope.status, EnvelopeStatus)
    assert_type(envelope.state, RetryState)
    assert_type(envelope.due, float | None)
    assert_type(envelope.counts, Mapping[str, int])
    assert_type(envelope.key, str)
    assert_type(envelope.time_left(0), float)
    assert_type(envelope.rescheduled(0), Envelope)
    assert_type(envelope.to_dict(), dict[str, Any])
    assert_type(Envelope.from_dict("{}"), Envelope)
    envelope.due = 5.0  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]


def reports(report: JobReport) -> None:
    assert_type(report.status, Literal["waiting", "running", "succeeded", "dead"])
    assert_type(report.due, datetime | None)
    assert_type(report.failures, tuple[Failure, ...])
    assert_type(report.envelope, Envelope | None)
    assert_type(report.describe(), str)


def engines() -> None:
    engine = Capabilities(
        engine="mine",
        max_hold=None,
        granularity=1.0,
        min_delay=0.0,
        at_least_once=True,
        supports_async=False,
    )
    assert_type(engine.next_hold(5), float)
    assert_type(engine.max_hold, float | None)
    Capabilities("mine")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
