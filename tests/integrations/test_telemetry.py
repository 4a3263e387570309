"""The labels that observers for telemetry share."""

import logging
import os
import threading

import pytest

from retrykit import GiveUp, Policy, RetryState, observe, retry, retrying
from retrykit._core.failures import ErrorRecord
from retrykit._core.retry_state import Failure
from retrykit.budgets import Budget, TokenBucket, shared
from retrykit.durable import Job
from retrykit.events import AttemptStarted
from retrykit.integrations._telemetry import (
    BoundedLabels,
    EventLabels,
    read_balances,
)

pytestmark = pytest.mark.usefixtures("clock")

AGAIN = Policy(schedule=[1, 2], on=OSError)


class Names:
    """Collects the labels of events."""

    def __init__(self, most=200):
        self._labels = EventLabels(most)
        self.functions, self.errors = [], []

    def __call__(self, event):
        self.functions.append(self._labels.function(event))
        if event.kind in {"attempt_failed", "gave_up"}:
            self.errors.append(self._labels.error(event._record))


@pytest.fixture
def names():
    with observe(names := Names()):
        yield names


def fail(error=OSError):
    raise error


def test_a_function_has_its_module_and_its_name(names):
    with pytest.raises(OSError):
        retry(AGAIN.replace(name="polite"))(fail)()
    assert {*names.functions} == {f"{__name__}.fail"}


def test_an_event_that_was_made_by_hand_has_the_labels_of_its_state():
    state = RetryState("reports", seed=7, epoch=0.0)
    assert EventLabels(5).function(AttemptStarted(state)) == "reports"


def test_a_block_has_the_name_of_its_policy_or_function(names):
    for policy in (AGAIN, AGAIN.replace(name="reports")):
        for attempt in retrying(policy):
            with attempt:
                pass
    around = f"{__name__}.test_a_block_has_the_name_of_its_policy_or_function"
    assert [*dict.fromkeys(names.functions)] == [around, "reports"]


def test_all_durable_jobs_have_one_name(names):
    job = Job(fail, AGAIN, "verify")
    for number in range(3):
        envelope = job.envelope(f"verify:{number}")
        envelope = job.attempt(envelope, [], {}).envelope
        job.attempt(envelope, [], {})
    job.attempt(job.envelope("verify-3", run=2), [ValueError], {})
    assert {*names.functions} == {"job"}
    assert {*names.errors} == {"OSError", "ValueError"}


def test_a_block_in_a_job_has_its_own_name(names):
    def work():
        for attempt in retrying(AGAIN, name="inner"):
            with attempt:
                pass

    job = Job(work, AGAIN, "outer")
    job.attempt(job.envelope("outer-1"), [], {})
    assert names.functions == ["job", "inner", "inner", "job"]


class Response:
    """Like those of HTTP clients."""

    def __init__(self, status_code):
        self.status_code = status_code


@pytest.mark.parametrize(
    ("result", "label"),
    [
        (Response(503), "503"),
        (Response(4111111111111111), "rejected_result"),
        ("a secret", "rejected_result"),
    ],
    ids=["response", "another status", "text"],
)
def test_a_rejected_result_has_no_label_but_the_status_of_a_response(
    names, result, label
):
    policy = Policy(schedule=[1], on_result=lambda _: True)
    policy.run(lambda: result)
    assert {*names.errors} == {label}


class OwnError(OSError):
    """Has a qualified name."""


def test_an_error_has_its_qualified_name(names):
    AGAIN.run(fail, OwnError)
    AGAIN.run(fail, GiveUp(KeyError("secret")))
    assert [*dict.fromkeys(names.errors)] == [f"{__name__}.OwnError", "KeyError"]


def test_an_error_of_another_process_has_the_name_that_it_had_there():
    failure = Failure(1, ErrorRecord("shop.Busy", "no", ""), None, 0.0, 0.1, 1.0)
    state = RetryState("fetch", 7, 0.0, failures=(failure,))
    assert EventLabels(5).error(state._record) == "shop.Busy"


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupted_attempt_has_the_type_of_its_interruption(names, error):
    with pytest.raises(error):
        AGAIN.call(fail, error)
    assert names.errors == [error.__name__]


@pytest.mark.usefixtures("quiet")
def test_labels_are_bounded_and_a_warning_is_logged_once(caplog):
    names = Names(2)
    with observe(names):
        for number in range(5):
            AGAIN.replace(name=f"block {number}").run(
                fail, type(f"Error{number}", (OSError,), {"__module__": "shop"})
            )
            for attempt in retrying(name=f"block {number}"):
                with attempt:
                    pass
    assert {*names.functions} == {f"{__name__}.fail", "block 0", "other"}
    assert {*names.errors} == {"shop.Error0", "shop.Error1", "_OTHER"}
    text = "telemetry has more than 2 {}: all further ones are labeled {!r}"
    assert [record.getMessage() for record in caplog.records] == [
        text.format("names of functions", "other"),
        text.format("types of errors", "_OTHER"),
    ]
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


class Switching(str):
    """A label at whose comparison other threads go on."""

    __slots__ = ()

    def __hash__(self):
        threading.Event().wait(0.001)
        return super().__hash__()


def test_labels_are_bounded_where_threads_add_them_together(caplog):
    bounded = BoundedLabels("names", 3, "other")
    ready = threading.Barrier(8)
    seen = []

    def add(number):
        ready.wait()
        seen.append(str(bounded(Switching(number))))

    threads = [threading.Thread(target=add, args=[n]) for n in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert seen.count("other") == 5
    assert len(caplog.records) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_does_not_wait_for_a_thread_of_its_parent():
    bounded = BoundedLabels("names", 5, "other")
    held, release = threading.Event(), threading.Event()

    def hold():
        with bounded._lock:  # noqa: SLF001
            held.set()
            release.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if not child:
        os._exit(0 if bounded("fetch") == "fetch" else 1)
    release.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


class Broken(Budget):
    """Has no balance."""

    balance = property(lambda self: fail())

    def withdraw(self, error, /): ...

    def deposit(self, cost, /): ...


def test_a_budget_without_a_balance_leaves_the_others(caplog):
    budgets = {"payments": TokenBucket(7), "broken": Broken()}
    found = read_balances(budgets, 1)
    assert found["payments"] == 7.0
    assert "broken" not in found
    assert "balance of budget broken failed" in caplog.text


def test_so_many_shared_budgets_are_read_as_were_used_most_recently():
    for number in range(3):
        shared(f"key:telemetry {number}", TokenBucket)
    assert [*read_balances({}, 2)] == ["key:telemetry 1", "key:telemetry 2"]
