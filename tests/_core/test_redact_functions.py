"""A function as `redact`, which leaves further secrets out of every text."""

import json
import pickle

import pytest

from retrykit import ConfigError, Policy, RetryState, aretry, observe, state_of
from retrykit._core.call_record import Terms, new_record
from retrykit._core.retry_log import title_of
from retrykit._internal.redaction import combine_redactions, redact_text
from retrykit.durable import Job
from retrykit.integrations.logging import observer
from retrykit.testing import record
from tests._support.concurrency import under_asyncio

TENANT = "acme"
URL = f"https://host/{TENANT}/p?token=S3CRET"


def without_tenant(text):
    return text.replace(TENANT, "*")


POLICY = Policy(schedule=[0], redact=without_tenant, raises="retry_error")


def fail():
    raise OSError(f"busy for {URL}") from KeyError(TENANT)


def test_a_function_gets_each_text_after_the_rule(caplog):
    with observe(observer()), record() as recorded:
        error = POLICY.run(fail).error
    state = state_of(error)
    texts = [str(error), json.dumps(state.to_dict()), caplog.text, str(recorded)]
    texts += [state.failures[0].describe(redact=state.redact)]
    texts += [pickle.dumps(state).decode("latin-1")]
    assert "OSError: busy for https://host/*/p?..." in str(error)
    assert [text for text in texts if TENANT in text or "S3CRET" in text] == []


def test_a_durable_history_is_redacted_by_the_function():
    job = Job(fail, POLICY.replace(raises="last"), "fetch")
    envelope = job.attempt(job.envelope("fetch-7"), [], {}).envelope
    envelope = job.attempt(envelope, [], {}).envelope
    assert TENANT not in json.dumps(envelope.to_dict())


@pytest.mark.parametrize("outer", [True, False, without_tenant])
def test_a_nested_history_is_redacted_by_both_policies(outer):
    inner = Policy(schedule=[0], redact=lambda text: text.replace("busy", "*"))
    state = Policy(schedule=[0], redact=outer).run(inner.call, fail).state
    text = json.dumps(state.to_dict()["nested_state"])
    job = Job(lambda: inner.call(fail), Policy(schedule=[0], redact=outer), "fetch")
    stored = job.attempt(job.envelope("fetch-7"), [], {}).envelope
    for each in (text, json.dumps(stored.to_dict()["state"]["nested_state"])):
        assert "busy" not in each
        assert (TENANT in each) == (outer is not without_tenant)


def test_a_rejected_result_is_redacted_by_the_function():
    policy = POLICY.replace(on_result=lambda _: True)
    data = policy.run(lambda: f"of {TENANT}").state.to_dict()
    assert data["failures"][0]["result"] == "of *"
    data = policy.run(lambda: [TENANT]).state.to_dict()
    assert data["failures"][0]["result"]["record"]["text"] == "['*']"


def raising(text):
    raise LookupError(text)


@pytest.mark.parametrize(
    ("function", "shown"),
    [
        (raising, "<LookupError in redact>"),
        (lambda _: None, "<NoneType from redact, not a str>"),
        (lambda _: b"503", "<bytes from redact, not a str>"),
    ],
)
def test_a_function_that_fails_shows_no_text(function, shown):
    """The text may be what it should have left out."""
    error = POLICY.replace(redact=function).run(fail).error
    assert str(error).endswith(f"last failure: OSError: {shown}")
    assert TENANT not in json.dumps(error.state.to_dict())


def test_the_title_of_a_request_is_redacted_by_the_function():
    record = new_record(Terms("fetch", redact=without_tenant), 7)
    record.request = "GET", URL
    assert title_of(record) == "GET host/*/p"


def test_redactions_are_combined():
    upper, end = str.upper, lambda text: f"{text}."
    both = combine_redactions(upper, end)
    assert redact_text("a", both) == "A."
    assert combine_redactions(upper, upper) is upper
    assert combine_redactions(False, upper) is upper
    assert combine_redactions(upper, False) is upper
    assert combine_redactions(False, False) is False
    assert combine_redactions(False, True) is True


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (None, "True, False or a function of the text, got None"),
        ("no", "True, False or a function of the text, got 'no'"),
        (str, "True, False or a function of the text"),
        (lambda: "", "a function that takes the text"),
        (under_asyncio, None),
    ],
)
def test_only_a_function_of_a_text_is_taken(value, rule):
    if rule is None:
        assert Policy(redact=value).redact is value
        return
    with pytest.raises(ConfigError, match=f"redact must be {rule}"):
        Policy(redact=value)


def test_an_async_function_is_rejected_even_under_aretry():
    async def later(text):
        return text

    with pytest.raises(ConfigError, match="redact must be a sync function"):
        aretry(redact=later)


def test_a_policy_with_a_function_is_not_written_as_data():
    with pytest.raises(ConfigError, match=r"add it with .replace\(redact=...\)"):
        POLICY.to_dict()
    assert repr(POLICY).count("redact=without_tenant") == 1
    assert pickle.loads(pickle.dumps(POLICY)) == POLICY  # noqa: S301  our own


def test_a_state_that_is_read_back_has_no_function():
    state = POLICY.run(fail).state
    assert state.redact is without_tenant
    assert RetryState.from_dict(state.to_dict()).redact is True
