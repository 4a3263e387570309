"""Strings that cannot be stored: rejected in arguments, escaped in errors."""

import pytest

from retrykit import ConfigError, Policy
from retrykit.durable import Envelope, Job
from retrykit.durable._json_payloads import as_json

HALF = "caf\udce9"  # how os.listdir() returns a name in Latin-1


def read(name):
    raise FileNotFoundError(name)


def test_stores_an_error_with_an_undecodable_file_name():
    job = Job(read, Policy(schedule=[1], on=OSError), "read")
    envelope = job.attempt(job.envelope("file-7"), [HALF], {}).envelope
    assert str(envelope).encode(), "the envelope can be encoded as UTF-8"
    [failure] = Envelope.from_dict(envelope.to_dict()).state.failures
    assert failure.error.message == r"caf\udce9"
    assert r"caf\udce9" in failure.error.traceback


def test_stores_a_rejected_result_that_is_not_encodable():
    def is_undecodable(value):
        return value == HALF

    job = Job(str, Policy(schedule=[1], on_result=is_undecodable), "read")
    envelope = job.attempt(job.envelope("file-7"), [HALF], {}).envelope
    assert envelope.state.failures[0].result.text == r"caf\udce9"


@pytest.mark.parametrize(
    ("value", "name"),
    [(HALF, "args"), ([HALF], "args[0]"), ({HALF: 1}, "a key of args")],
    ids=["a string", "in a list", "a key"],
)
def test_rejects_lone_surrogates_in_arguments(value, name):
    with pytest.raises(ConfigError, match="encodable as UTF-8") as caught:
        as_json("args", value)
    assert caught.value.message.startswith(name)


@pytest.mark.parametrize("job_id", ["a\0b", "a\nb", HALF], ids=["nul", "line", "half"])
def test_rejects_an_unprintable_id(job_id):
    job = Job(read, Policy(), "read")
    with pytest.raises(ConfigError, match="job_id must be a printable string"):
        job.envelope(job_id)
