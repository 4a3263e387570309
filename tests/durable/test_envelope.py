"""Envelope: complete, small, and readable for years."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from retrykit import Policy, schedules as s
from retrykit.durable import Envelope, Job
from retrykit.durable._json_payloads import as_json
from retrykit.testing.strategies import policies
from tests._support.durable_jobs import (
    PATIENT,
    fail_to_connect,
    failed_envelope,
    through_json,
)
from tests._support.reference_data import reference_data

DAY = 86_400.0
YEAR_9999 = 253_402_300_799.0
ONCE = failed_envelope(1)


class TestAnEnvelope:
    def test_describes_the_failures_and_the_next_attempt(self):
        envelope = failed_envelope(3)
        assert (envelope.status, envelope.failed_attempts, envelope.key) == (
            "waiting",
            3,
            "job-7:4",
        )
        assert envelope.due - envelope.written == 3600
        assert envelope.counts == {"ConnectionError": 3}
        assert [str(error) for error in envelope.state.errors] == [
            "ConnectionError: connection refused"
        ] * 3

    def test_of_a_new_job_is_due_immediately(self):
        envelope = failed_envelope(0)
        assert (envelope.status, envelope.failed_attempts, envelope.key) == (
            "waiting",
            0,
            "job-7:1",
        )
        assert envelope.due == envelope.written == envelope.state.epoch

    def test_of_a_requeued_job_has_new_keys(self):
        again = replace(failed_envelope(2), run=3)
        assert again.key == "job-7#3:3"
        assert through_json(again) == again

    def test_of_a_dead_job_has_the_key_of_the_last_attempt(self):
        dead = failed_envelope(2, PATIENT.replace(max_attempts=2))
        assert (dead.status, dead.due, dead.key) == ("dead", None, "job-7:2")

    def test_counts_each_error_type_and_rejected_results(self):
        outcomes = iter([ConnectionError, TimeoutError, None, ConnectionError])

        def fetch():
            outcome = next(outcomes)
            if outcome is not None:
                raise outcome
            return "busy"

        policy = PATIENT.replace(on_result=lambda result: result == "busy")
        assert failed_envelope(4, policy, fetch).counts == {
            "ConnectionError": 2,
            "TimeoutError": 1,
            "rejected result": 1,
        }

    def test_counts_dropped_failures(self):
        envelope = failed_envelope(75)
        assert envelope.counts == {"ConnectionError": 75}
        assert envelope.failed_attempts == 75
        assert len(envelope.state.failures) == 20

    def test_keeps_the_first_and_the_last_failures(self):
        numbers = [failure.attempt for failure in failed_envelope(75).state.failures]
        assert numbers == [*range(1, 11), *range(66, 76)]

    def test_keeps_only_the_last_traceback(self):
        traces = [error.traceback for error in failed_envelope(3).state.errors]
        assert traces[:2] == ["", ""]
        assert "in fail_to_connect" in traces[2]

    @pytest.mark.thorough
    def test_is_small_despite_long_error_messages(self):
        class RantError(ConnectionError):
            pass

        RantError.__qualname__ = "Rant" * 10_000

        def rant():
            raise RantError("no " * 10_000)

        assert len(json.dumps(failed_envelope(75, fn=rant).to_dict())) < 40_000
        assert len(json.dumps(failed_envelope(75).to_dict())) < 8_000

    def test_is_small_despite_long_results(self):
        policy = PATIENT.replace(on_result=lambda _: True)
        envelope = failed_envelope(75, policy, lambda: "no " * 10_000)
        assert len(json.dumps(envelope.to_dict())) < 20_000
        assert envelope.state.failures[0].result.type == "str"

    def test_contains_only_storable_text(self):
        """PostgreSQL rejects NUL and lone surrogates in its JSON."""

        def fail_with_unserializable_result():
            if len(seen) == 1:
                return "a\0b"
            seen.append(1)
            raise ConnectionError("a\0b \ud800")

        seen = []
        policy = PATIENT.replace(on_result=lambda _: True)
        error, result = failed_envelope(
            2, policy, fail_with_unserializable_result
        ).state.failures
        assert str(error.error) == r"ConnectionError: a\x00b \ud800"
        assert result.result.text == r"a\x00b"

    def test_contains_only_storable_names_of_nested_calls(self):
        inside = Policy(schedule=[0], name="a\0b")
        dead = failed_envelope(1, fn=lambda: inside.call(fail_to_connect))
        assert dead.state.innermost.name == r"a\x00b"


@given(policies(max_attempts=6), st.integers(0, 6))
def test_survives_a_json_round_trip(policy, times):
    policy = policy.replace(max_elapsed=None, deadline="stop", nested="retry")
    job, envelope = Job(fail_to_connect, policy), None
    envelope = job.envelope("any")
    for _ in range(times):
        if envelope.status == "waiting":
            envelope = job.attempt(envelope, [], {}).envelope
    assert through_json(envelope) == envelope
    assert json.loads(as_json("envelope", envelope.to_dict())) == envelope.to_dict()
    assert Envelope.from_dict(json.dumps(envelope.to_dict())) == envelope
    assert Envelope.from_dict(json.dumps(envelope.to_dict()).encode()) == envelope


def test_the_longest_delay_can_be_stored():
    """Delays saturate at the largest float; the sum of two is infinite."""
    endless = Policy(schedule=s.constant(1e308), max_attempts=9)
    job = Job(fail_to_connect, endless)
    envelope = job.envelope("any")
    for _ in range(4):
        envelope = through_json(job.attempt(envelope, [], {}).envelope)
    assert envelope.due == YEAR_9999


class TestTimeLeft:
    def test_ends_when_the_attempt_is_due(self):
        envelope = replace(failed_envelope(1), written=1000.0, due=4600.0)
        assert [envelope.time_left(now) for now in (1000, 2800, 4600, 9000)] == [
            3600,
            1800,
            0,
            -4400,
        ]

    def test_is_zero_for_an_ended_job(self):
        dead = failed_envelope(1, PATIENT.replace(max_attempts=1))
        assert dead.time_left(0.0) == 0.0
        assert dead.rescheduled(5.0).due is None

    @given(st.floats(0, YEAR_9999))
    def test_never_grows_when_the_clock_is_set_back(self, now):
        """A clock set back by hours does not make a job wait for hours longer."""
        envelope = replace(ONCE, written=10 * DAY, due=10 * DAY + 3600)
        assert envelope.time_left(now) <= 3600
        assert envelope.rescheduled(now).time_left(now) <= 3600

    def test_keeps_passing_after_the_clock_was_set_back(self):
        """Set back by five hours before its wait, and once more while it waits."""
        envelope = replace(failed_envelope(1), written=10 * DAY, due=10 * DAY + 3600)
        back = 10 * DAY - 5 * 3600
        rescheduled = envelope.rescheduled(back)
        assert rescheduled.time_left(back) == 3600
        assert rescheduled.time_left(back + 900) == 2700
        again = rescheduled.rescheduled(back + 900).rescheduled(back - 5 * 3600)
        assert again.time_left(back - 5 * 3600) == 2700
        assert again.time_left(back - 5 * 3600 + 2700) == 0

    @given(st.lists(st.floats(-5 * 3600, 900), max_size=20))
    def test_ends_after_the_expected_number_of_hops(self, jumps):
        """However the clock jumps, each hop of 15 min brings it nearer."""
        envelope = replace(ONCE, written=10 * DAY, due=10 * DAY + 3600)
        now, hops = envelope.written, 0
        while (remaining := envelope.time_left(now)) > 0:
            slept = min(remaining, 900.0)
            now += slept
            envelope = envelope.rescheduled(now)
            if jumps:
                now = max(now + jumps.pop(), 0.0)
                envelope = envelope.rescheduled(now)
            hops += 1
        assert hops <= 5

    def test_rescheduling_changes_nothing_else(self):
        envelope = failed_envelope(1)
        rescheduled = through_json(envelope.rescheduled(envelope.written + 60))
        assert replace(rescheduled, written=envelope.written) == envelope
        assert rescheduled.key == envelope.key


class TestAnEnvelopeOfTheFirstVersion:
    """Envelopes wait in brokers for weeks, and every later version must read them."""

    @pytest.fixture
    def data(self):
        return reference_data("envelope")

    def test_is_read(self, data):
        envelope = Envelope.from_dict(data)
        assert (envelope.key, envelope.status) == ("verify-7#2:4", "waiting")
        assert envelope.policy == "hostnames"
        assert envelope.due - envelope.written == 4.0
        assert envelope.counts == {"ConnectionError": 1, "rejected result": 2}
        first, second, third = envelope.state.failures
        assert str(first.error) == "ConnectionError: refused"
        assert second.result == 503
        assert third.result.type == "shop.Page"
        assert (third.rule, third.hint, third.delay) == (None, 4.0, 4.0)
        assert envelope.state.rule_counts == (1,)

    def test_is_written_with_the_parts_added_since(self, data):
        added = {"max_attempts": None, "stop_detail": None, "used_fallback": False}
        added |= {"retry_in": None, "hedges": 0}
        written = data | {"state": data["state"] | added}
        assert Envelope.from_dict(data).to_dict() == written
        assert list(Envelope.from_dict(data).to_dict()) == list(data)

    def test_continues(self, data):
        envelope = Envelope.from_dict(data)
        policy = Policy(schedule=[1, 2, 4, 8], name="hostnames")
        after = (
            Job(fail_to_connect, policy, "verify").attempt(envelope, [], {}).envelope
        )
        assert after.key == "verify-7#2:5"
        assert after.state.next_delay == 8.0
        assert after.counts["ConnectionError"] == 2
