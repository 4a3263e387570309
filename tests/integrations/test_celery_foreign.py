"""Policies that are read of options of Celery, held against Celery and kombu."""

from itertools import islice

import pytest
from celery import Celery
from celery.utils.time import get_exponential_backoff_interval
from hypothesis import given, strategies as st
from kombu.utils.functional import fxrange

from retrykit.config import foreign

TRANSPORT = {"recoverable_connection_errors": OSError}
seconds = st.integers(0, 300).map(lambda tenths: tenths / 10)


@given(start=seconds, step=seconds, longest=seconds)
def test_delays_of_a_connection_are_those_of_kombu(start, step, longest):
    table = {"interval_start": start, "interval_step": step, "interval_max": longest}
    document = {"task_publish_retry_policy": table | {"max_retries": 3}}
    policy = foreign.read(document, errors=TRANSPORT).policy
    waits = fxrange(start, longest + start, step, repeatlast=True)
    for retry, wait in enumerate(islice(waits, 40), 1):
        delay = min(wait, longest)
        assert policy.schedule.bounds(retry) == pytest.approx((delay, delay))


@given(
    backoff=st.integers(1, 100),
    longest=st.integers(1, 1000),
    retry=st.integers(0, 12),
)
def test_delays_of_a_task_are_those_of_celery(backoff, longest, retry):
    options = {
        "autoretry_for": ["OSError"],
        "retry_backoff": backoff,
        "retry_backoff_max": longest,
    }
    full = foreign.read(options).policy.schedule
    bare = foreign.read(options | {"retry_jitter": False}).policy.schedule
    most = get_exponential_backoff_interval(backoff, retry, longest)
    assert bare.bounds(retry + 1) == (most, most)
    assert full.bounds(retry + 1) == (0, most)


def test_options_of_every_task_are_merged_as_celery_does():
    annotations = {
        "*": {"max_retries": 1, "default_retry_delay": 7},
        "add": {"max_retries": 6, "autoretry_for": (OSError,)},
    }
    app = Celery(set_as_current=False)
    app.conf.task_annotations = annotations

    @app.task(name="add", shared=False)
    def add():
        raise OSError

    policy = foreign.read({"task_annotations": annotations}, "add").policy
    task = app.tasks["add"]
    assert policy.max_attempts == task.max_retries + 1
    assert policy.schedule.bounds(1) == (task.default_retry_delay,) * 2
    assert policy.on is OSError
