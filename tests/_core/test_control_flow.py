"""Exceptions that are control flow are not retried."""

import asyncio
import bdb
import concurrent.futures
import importlib
import re
import sys
import unittest
from pathlib import Path

import pytest

from retrykit import Policy, Rule, StopReason, aretry, retry, retrying, state_of
from retrykit._core.decision import CANCELLED, CONTROL_FLOW
from retrykit.budgets import TokenBucket

NAMES = sorted(name for names in CONTROL_FLOW.values() for name in names.split())
POLICY = Policy(schedule=[0, 0], on=Exception)


def make_class(full_name, *bases):
    module, _, name = full_name.rpartition(".")
    return type(name, bases or (Exception,), {"__module__": module})


def find(full_name):
    """Return the class itself if its library is installed, or one of its name."""
    module, _, name = full_name.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        return make_class(full_name)


def count_calls(policy, error):
    calls = []

    def fetch():
        calls.append(1)
        raise error

    with pytest.raises(type(error)) as caught:
        policy.call(fetch)
    assert caught.value is error
    return len(calls), state_of(error)


@pytest.mark.parametrize("name", NAMES)
def test_control_flow_is_not_retried_unless_it_is_named(name):
    kind = make_class(name)
    count, state = count_calls(POLICY, kind("again"))
    assert count == 1
    cancelled = StopReason.CANCELLED if name in CANCELLED else StopReason.NOT_RETRYABLE
    assert state.stop_reason is cancelled
    assert count_calls(POLICY.replace(on=kind), kind())[0] == 3
    assert count_calls(POLICY.replace(on=(OSError, kind)), kind())[0] == 3
    rule = Rule(on=kind, schedule=[0])
    assert count_calls(POLICY.replace(on=OSError, rules=[rule]), kind())[0] == 2
    # A predicate names no class.
    assert count_calls(POLICY.replace(on=lambda error: True), kind())[0] == 1


def test_cancelled_are_some_of_them():
    assert set(NAMES) > CANCELLED


@pytest.mark.parametrize(
    "kind",
    [
        *(StopIteration, StopAsyncIteration, bdb.BdbQuit, unittest.SkipTest),
        concurrent.futures.CancelledError,
    ],
)
def test_control_flow_of_python_is_not_retried(kind):
    assert count_calls(POLICY, kind())[0] == 1


@pytest.mark.parametrize(
    "name",
    [name for name in NAMES if name.partition(".")[0] in sys.stdlib_module_names],
)
def test_each_name_of_python_is_one_of_its_classes(name):
    module, _, qualified = name.rpartition(".")
    if sys.version_info < (3, 13) and "ShutDown" in name:
        assert not hasattr(importlib.import_module(module), "ShutDown")
        return
    kind = getattr(importlib.import_module(module), qualified)
    assert f"{kind.__module__}.{kind.__qualname__}" == name


@pytest.mark.parametrize(
    ("library", "name"),
    [
        ("celery", "celery.exceptions.Retry"),
        ("celery", "celery.exceptions.Ignore"),
        ("celery", "celery.exceptions.SoftTimeLimitExceeded"),
        ("click", "click.Abort"),
        ("click", "click.exceptions.Exit"),
        ("dbos", "dbos._error.DBOSAwaitedWorkflowCancelledError"),
        ("hypothesis", "hypothesis.errors.UnsatisfiedAssumption"),
        ("procrastinate", "procrastinate.exceptions.JobAborted"),
        ("rq", "rq.timeouts.JobTimeoutException"),
        ("temporalio", "temporalio.exceptions.CancelledError"),
    ],
)
def test_control_flow_of_an_installed_library_is_not_retried(library, name):
    pytest.importorskip(library)
    kind = find(name)
    assert kind.__module__.partition(".")[0] in {library, "billiard"}
    assert count_calls(POLICY, kind.__new__(kind))[0] == 1


def test_a_subclass_is_control_flow_too():
    base = make_class("celery.exceptions.TaskPredicate")
    kind = make_class("app.QueuedElsewhere", base)
    assert count_calls(POLICY, kind())[0] == 1
    assert count_calls(POLICY.replace(on=kind), kind())[0] == 3
    assert count_calls(POLICY.replace(on=base), kind())[0] == 3
    # The class that is named is another one.
    assert count_calls(POLICY.replace(on=kind), base())[0] == 1


def test_control_flow_in_a_group_ends_the_call():
    group = ExceptionGroup("two", [OSError(), unittest.SkipTest()])
    assert count_calls(POLICY, group)[0] == 1
    assert count_calls(POLICY.replace(exception_groups="any"), group)[0] == 1


@pytest.mark.parametrize("raises", ["last", "retry_error", "group"])
def test_a_cancelled_call_raises_its_own_error_and_has_no_fallback(raises):
    error = make_class("temporalio.exceptions.CancelledError")("cancelled")
    bucket = TokenBucket()
    policy = POLICY.replace(raises=raises, fallback="old", budget=bucket)
    count, state = count_calls(policy, error)
    assert (count, state.used_fallback, bucket.balance) == (1, False, 500)
    assert state.stop_reason is StopReason.CANCELLED
    assert not hasattr(error, "__notes__")


def test_a_cancellation_in_a_later_attempt_ends_the_call():
    errors = [OSError(), concurrent.futures.CancelledError(), OSError()]

    def fetch():
        raise errors.pop(0)

    with pytest.raises(concurrent.futures.CancelledError) as caught:
        retry(POLICY)(fetch)()
    assert len(errors) == 1
    assert caught.value.__notes__[0].startswith("retrykit: was cancelled after 2 att")


def test_the_end_of_an_iteration_is_no_failure():
    class Pages:
        def __init__(self):
            self.pages = iter("ab")

        def __iter__(self):
            return self

        @retry(schedule=[0, 0])
        def __next__(self):
            return next(self.pages)

        def __aiter__(self):
            return self

        @aretry(schedule=[0, 0])
        async def __anext__(self):
            try:
                return next(self.pages)
            except StopIteration:
                raise StopAsyncIteration from None

    async def read():
        return [page async for page in Pages()]

    assert [*Pages()] == ["a", "b"]
    assert asyncio.run(read()) == ["a", "b"]


def test_a_skipped_test_in_a_block_is_not_retried():
    blocks = []
    with pytest.raises(unittest.SkipTest):
        for attempt in retrying(POLICY):
            with attempt:
                blocks.append(1)
                raise unittest.SkipTest
    assert len(blocks) == 1


def test_the_documents_list_all_of_them():
    text = Path("docs/policies.md").read_text("utf-8")
    table = text[text.index("| library | not retried") :].partition("\n\n")[0]
    rows = dict(re.findall(r"^\| (\w[\w .-]*) \| (.*) \|$", table, re.MULTILINE))
    del rows["library"]
    assert list(rows) == list(CONTROL_FLOW)
    for library, names in CONTROL_FLOW.items():
        listed = re.findall(r"`([\w.]+)`", rows[library])
        # By the name that users import it by.
        assert {each.rpartition(".")[2] for each in listed} == {
            each.rpartition(".")[2] for each in names.split()
        }
