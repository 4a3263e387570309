"""JobReport: its description as readable lines."""

import dataclasses
from datetime import UTC, datetime

import pytest

from retrykit import Policy
from retrykit.durable import Job, JobReport

MORNING = datetime(2026, 11, 16, 3, tzinfo=UTC).timestamp()


def envelope_after(*outcomes, **settings):
    """Return the envelope of a job after attempts at 3:00, 4:00 and so on."""
    remaining = iter(outcomes)

    def verify():
        outcome = next(remaining)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    settings = {"schedule": ["1h"] * 30} | settings
    job = Job(verify, Policy(**settings), "verify")
    envelope = job.envelope("verify-7")
    for _ in outcomes:
        envelope = job.attempt(envelope, [], {}).envelope
    state = envelope.state
    moved = tuple(
        failure._replace(started=3600.0 * (failure.attempt - 1), duration=0.0)
        for failure in state.failures
    )
    spent = 3600.0 * (state.attempt - 1)
    changed = {"failures": moved, "elapsed_at_end": spent}
    state = state._replace(epoch=MORNING, **changed)
    due = None if envelope.due is None else MORNING + 3600.0 * state.attempt
    return dataclasses.replace(envelope, state=state, due=due)


def report_lines(envelope, status, *, result=None, why="", ended=None):
    report = JobReport(
        "verify-7", status, envelope, result, why, "verify-7:1", "verify", ended
    )
    return report.describe().splitlines()


REFUSED = ConnectionError("refused")
UNKNOWN = LookupError("no such\n  name")


def test_shows_when_a_waiting_job_is_due():
    assert report_lines(envelope_after(REFUSED, UNKNOWN, UNKNOWN), "waiting") == [
        "verify-7: waiting, 3 failed attempts, next due 2026-11-16 06:00:00 UTC",
        "  2 x LookupError, 1 x ConnectionError",
        "      1. 2026-11-16 03:00:00 UTC, ConnectionError: refused",
        "      2. 2026-11-16 04:00:00 UTC, LookupError: no such name",
        "      3. 2026-11-16 05:00:00 UTC, LookupError: no such name",
    ]


def test_shows_a_new_job():
    first = envelope_after()
    due = dataclasses.replace(first, due=MORNING)
    assert report_lines(due, "waiting") == [
        "verify-7: waiting, 0 failed attempts, next due 2026-11-16 03:00:00 UTC"
    ]


def test_shows_no_past_due_time_of_a_running_job():
    report = JobReport(
        "verify-7", "running", envelope_after(REFUSED), None, "", "", "verify", None
    )
    assert report.describe().startswith("verify-7: running, 1 failed attempt\n")
    assert report.due is None


def test_shows_why_a_dead_job_gave_up():
    envelope = envelope_after(REFUSED, REFUSED, max_attempts=2)
    [first, *_] = report_lines(
        envelope, "dead", why="JobFailed: the same in many words"
    )
    gave_up = "gave up after 2 attempts in 1 h: max_attempts=2 reached"
    assert first == f"verify-7: dead, {gave_up}"


def test_shows_why_a_job_was_killed():
    [first, *_] = report_lines(envelope_after(REFUSED), "dead", why="cancelled")
    assert first == "verify-7: dead, 1 failed attempt: cancelled"


@pytest.mark.parametrize("envelope", [envelope_after(REFUSED), None])
def test_shows_when_a_job_ended(envelope):
    ended = datetime(2026, 11, 16, 9, tzinfo=UTC)
    [_, second, *_] = report_lines(envelope, "dead", why="cancelled", ended=ended)
    assert second == "  ended 2026-11-16 09:00:00 UTC"


@pytest.mark.parametrize(("result", "end"), [(None, ""), ({"ip": 4}, ": {'ip': 4}")])
def test_shows_the_result_of_a_succeeded_job(result, end):
    [first, *_] = report_lines(
        envelope_after(REFUSED, result), "succeeded", result=result
    )
    assert first == f"verify-7: succeeded after 2 attempts in 1 h{end}"


def test_shows_the_number_of_dropped_failures():
    lines = report_lines(envelope_after(*[REFUSED] * 9, max_failures=4), "waiting")
    assert lines[1] == "  9 x ConnectionError"
    assert [line.split(".")[0].strip() for line in lines[2:]] == [
        "1", "2", "", "8", "9",
    ]  # fmt: skip
    assert lines[4] == "    ... 5 more"


def test_shows_the_reason_if_the_envelope_is_unreadable():
    assert report_lines(None, "dead", why="it is cut off") == [
        "verify-7: dead: it is cut off"
    ]


def test_shows_times_after_the_year_9999():
    envelope = dataclasses.replace(envelope_after(REFUSED), due=1e300)
    report = JobReport(
        "verify-7", "waiting", envelope, None, "", "verify-7:1", "verify", None
    )
    assert report.due == datetime(9999, 12, 31, tzinfo=UTC)
    assert (
        report.describe().splitlines()[0].endswith("next due 9999-12-31 00:00:00 UTC")
    )


def test_shows_times_before_1970():
    envelope = dataclasses.replace(envelope_after(REFUSED), due=-1e300)
    report = JobReport(
        "verify-7", "waiting", envelope, None, "", "verify-7:1", "verify", None
    )
    assert report.due == datetime(1970, 1, 1, tzinfo=UTC)


def test_shows_rejected_results():
    envelope = envelope_after(503, on_result=lambda status: status == 503)
    assert report_lines(envelope, "waiting")[1:] == [
        "  1 x rejected result",
        "      1. 2026-11-16 03:00:00 UTC, a rejected result of type int",
    ]


def test_is_a_value():
    report = JobReport(
        "verify-7", "succeeded", envelope_after(0), 0, "", "verify-7:1", "verify", None
    )
    assert report == report.replace(engine_id="verify-7:1")
    assert (report.result, report.engine_id, report.reason) == (0, "verify-7:1", "")
