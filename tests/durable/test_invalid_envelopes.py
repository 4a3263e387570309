"""Envelopes that were changed are rejected with a reason."""

import copy
import json
import logging
import math

import pytest
from hypothesis import given, strategies as st

from retrykit import ConfigError, Policy
from retrykit._core.rules import Rule
from retrykit.durable import Envelope, Job, JobReport
from tests._support.durable_jobs import fail_to_connect, failed_envelope, through_json

PLAIN = Policy(schedule=[1] * 60)
RULED = PLAIN.replace(
    max_attempts=76,
    rules=[
        Rule(on=ConnectionError, schedule=[3600] * 60),
        Rule(on=OSError, max_attempts=50),
    ],
)


def stored_envelope(times, policy=PLAIN, fn=fail_to_connect):
    """Return an envelope as JSON data."""
    return json.loads(json.dumps(failed_envelope(times, policy, fn).to_dict()))


NEW, WAITING, LONG = (
    stored_envelope(0),
    stored_envelope(3, RULED),
    stored_envelope(26, RULED),
)
DEAD = stored_envelope(2, PLAIN.replace(max_attempts=2))
SUCCEEDED = stored_envelope(1, fn=lambda: "verified")
# They may be missing in a state: they were added later.
ADDED = {"hedges", "max_attempts", "retry_in", "stop_detail", "used_fallback"}
STORED = {"new": NEW, "waiting": WAITING, "long": LONG, "dead": DEAD, "won": SUCCEEDED}


def parts(data, path=()):
    """Yield every part of a value with its path."""
    yield path, data
    if isinstance(data, dict | list):
        pairs = data.items() if isinstance(data, dict) else enumerate(data)
        for key, part in pairs:
            yield from parts(part, (*path, key))


def put(data, path, value):
    """Return a copy of data with another value at a path."""
    if not path:
        return value
    data = copy.deepcopy(data)
    at = data
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return data


def generic_path(path):
    """Return a path as a string, with * in place of indices."""
    return ".".join("*" if isinstance(key, int) else key for key in path)


def read(data):
    """Return the envelope of data; None if it is rejected with a short ConfigError."""
    try:
        return Envelope.from_dict(data)
    except ConfigError as error:
        assert len(str(error)) < 300, "the error must not contain the envelope"
        return None


def assert_continues(envelope):
    """Check that an attempt of an envelope works, and returns a valid envelope."""
    envelope.rescheduled(0.0)
    assert not math.isnan(envelope.time_left(envelope.written))
    try:
        after = Job(fail_to_connect, RULED, "verify").attempt(envelope, [], {}).envelope
    except ConfigError:
        return
    assert after.failed_attempts == envelope.failed_attempts + 1
    assert through_json(after) == after
    report = JobReport(after.job, "waiting", after, None, "", "", "", None)
    assert report.describe()
    assert after.state.started_at.year < 10_000


@pytest.fixture(autouse=True)
def quiet():
    """Suppress the logs of thousands of changed fingerprints."""
    log = logging.getLogger("retrykit.durable")
    log.disabled = True
    yield
    log.disabled = False


@pytest.mark.parametrize("name", STORED)
def test_is_read_as_written(name):
    assert read(STORED[name]).to_dict() == STORED[name]


def test_truncated_text_is_rejected():
    text = json.dumps(WAITING)
    assert [cut for cut in range(len(text)) if read(text[:cut])] == []


@pytest.mark.parametrize(
    "data", [WAITING, DEAD, SUCCEEDED], ids=["waiting", "dead", "won"]
)
def test_missing_and_additional_keys_are_rejected(data):
    for path, part in parts(data):
        if not isinstance(part, dict) or path == ("counts",):
            continue
        assert read(put(data, path, part | {"flavor": "sweet"})) is None
        for key in part if path != ("state",) else part.keys() - ADDED:
            less = {name: value for name, value in part.items() if name != key}
            assert read(put(data, path, less)) is None, (path, key)


KINDS = [None, True, 7.5, "text", ["list"], {"key": "value"}]
# Values that may be None, and plain results.
FREE = {
    "state.max_elapsed": (type(None), float),
    "state.max_attempts": (type(None), float),
    "state.retry_in": (type(None), float),
    "state.stop_detail": (type(None), str),
    "state.retry_cost": (type(None), float),
    "state.next_delay": (type(None), float),
    "state.failures.*.delay": (type(None), float),
    "state.failures.*.hint": (type(None), float),
    "state.failures.*.rule": (type(None),),
    "state.failures.*.result": (type(None), bool, float, str),
    "state.failures.*.error": (type(None),),
}


def kind_of(value):
    return float if type(value) is int else type(value)


@pytest.mark.parametrize("data", [NEW, WAITING, DEAD], ids=["new", "waiting", "dead"])
def test_values_of_a_wrong_type_are_rejected(data):
    for path, part in parts(data):
        for other in KINDS:
            if kind_of(other) in {kind_of(part), *FREE.get(generic_path(path), ())}:
                continue
            assert read(put(data, path, other)) is None, (path, other)


EXTREMES = [0, -1, 1, 10**12, 10**13, 10**400, -(10**400), 1e308, -1e308, 2.5, ""]
EXTREMES += [math.nan, math.inf, "\0\ud800", "x" * 10_000, [], {}, 2**63]


@pytest.mark.thorough
@pytest.mark.parametrize("data", [NEW, WAITING, LONG], ids=["new", "waiting", "long"])
def test_a_changed_value_is_rejected_or_harmless(data):
    taken = 0
    seen = set()
    for path, _ in parts(data):
        if generic_path(path) in seen:
            continue
        seen.add(generic_path(path))
        for other in EXTREMES:
            envelope = read(put(data, path, other))
            if envelope is not None:
                taken += 1
                assert_continues(envelope)
    assert taken > 50, "or this shows nothing"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda part: st.lists(part) | st.dictionaries(st.text(), part),
    max_leaves=5,
)
PATHS = [path for path, _ in parts(WAITING)]
CHANGES = st.lists(st.tuples(st.sampled_from(PATHS), VALUES), min_size=1, max_size=3)


@given(CHANGES)
def test_any_change_is_rejected_or_harmless(changes):
    data = WAITING
    for path, value in changes:
        try:
            data = put(data, path, value)
        except (IndexError, KeyError, TypeError):
            continue
    envelope = read(data)
    if envelope is not None:
        assert_continues(envelope)


@given(VALUES | st.binary() | st.text().map(lambda text: "{" + text))
def test_other_data_is_rejected(value):
    assert read(value) is None


def dropped(data):
    """Return an envelope in which a failure in the middle is missing."""
    failures = data["state"]["failures"]
    return put(data, ("state", "failures"), failures[:1] + failures[2:])


CONTRADICTIONS = {
    "run 0": (("run",), 0, "run"),
    "a job that was queued again by its name": (("job",), "job#2", "job"),
    "written before 1970": (("written",), -1, "written"),
    "written after the year 9999": (("written",), 10**12, "written"),
    "due after the year 9999": (("due",), 10**12, "due"),
    "due never, though it waits": (("due",), None, "due"),
    "one failure more in the counts": (("counts",), {"ConnectionError": 4}, "counts"),
    "no failures in the counts": (("counts",), {}, "counts"),
    "an attempt in which nothing failed": (("state", "attempt"), 4, "attempt"),
    "failures twice": (("state", "failures", 1, "attempt"), 1, "failures"),
    "failures after the last": (("state", "failures", 2, "attempt"), 9, "failures"),
    "more failures than were counted": (("state", "dropped_failures"), 1, "counts"),
    "a delay that nobody waits for": (("state", "next_delay"), None, "next_delay"),
    "an end, though it waits": (("state", "stop_reason"), "succeeded", "due"),
    "a call inside, though it waits": (
        ("state", "nested_state"),
        NEW["state"],
        "nested_state",
    ),
    "a seed below zero": (("state", "seed"), -1, "seed"),
}


@pytest.mark.parametrize(
    ("path", "value", "part"), CONTRADICTIONS.values(), ids=CONTRADICTIONS
)
def test_contradictions_are_rejected(path, value, part):
    with pytest.raises(
        ConfigError,
        match=rf"^envelope\.(state\.)?{part} .*; it contradicts the rest ",
    ):
        Envelope.from_dict(put(WAITING, path, value))


def test_a_history_with_a_missing_failure_is_rejected():
    with pytest.raises(ConfigError, match=r"^envelope.counts .* it contradicts the"):
        Envelope.from_dict(dropped(WAITING))


def test_an_unusable_state_is_rejected():
    with pytest.raises(ConfigError, match=r"^envelope.state.epoch .* it is after"):
        Envelope.from_dict(put(WAITING, ("state", "epoch"), 10**12))


def test_more_failures_by_rules_than_in_total_are_rejected():
    with pytest.raises(ConfigError, match=r"rule_counts .* it contradicts the rest"):
        Envelope.from_dict(put(NEW, ("state", "rule_counts"), [1]))


def test_a_delay_before_the_first_attempt_is_rejected():
    with pytest.raises(ConfigError, match=r"next_delay .* it contradicts the rest"):
        Envelope.from_dict(put(NEW, ("state", "next_delay"), 5.0))


def test_a_newer_version_is_rejected_with_a_suggestion():
    with pytest.raises(ConfigError) as caught:
        Envelope.from_dict({"version": 2, "anything": "else"})
    assert caught.value.message == (
        "envelope must be of version 1, got 'version 2'; "
        "upgrade retrykit in this worker"
    )


def test_a_version_of_thousands_of_digits_is_rejected():
    with pytest.raises(ConfigError, match="got 'version <int that cannot be shown>'"):
        Envelope.from_dict({"version": 10**5000})


@pytest.mark.parametrize("version", [0, -1, True, 1.0, "1", None, [1]], ids=repr)
def test_an_unknown_version_is_rejected(version):
    assert read(WAITING | {"version": version}) is None


def test_the_error_is_short():
    with pytest.raises(ConfigError) as caught:
        Envelope.from_dict(LONG | {"due": "tomorrow"})
    assert caught.value.message == (
        "envelope.due must be as retrykit wrote it, got 'tomorrow'; "
        "it is not of type int or float"
    )


def test_the_error_names_the_field_in_one_line():
    for path, _ in parts(LONG):
        with pytest.raises(ConfigError) as caught:
            Envelope.from_dict(put(LONG, path, [object()]))
        message, where = caught.value.message, "envelope"
        for key in path:
            where += f"[{key}]" if isinstance(key, int) else f".{key}"
        assert len(message) < 200
        # The names in counts are those of errors.
        assert where in message or path[0] == "counts"


def test_states_nested_too_deep_are_rejected():
    state = None
    for _ in range(2000):
        state = DEAD["state"] | {"nested_state": state}
    assert read(DEAD | {"state": state}) is None
    assert read('{"state":' * 50_000) is None
