"""How `serve` runs and stops a worker of Celery; tests/engines has real ones."""

import os
import signal
import threading

import pytest
from celery import Celery, signals

from retrykit.integrations import celery as durable
from retrykit.integrations.celery._child_signals import ChildSignals


@pytest.fixture
def quits():
    """Set by SIGQUIT, which asks Celery for a cold shutdown."""
    quits = threading.Event()
    before = signal.signal(signal.SIGQUIT, lambda *_: quits.set())
    yield quits
    signal.signal(signal.SIGQUIT, before)


def serve(run, exitcode=0, **options):
    """Serve an app whose worker runs a function; return the worker's options."""
    app, given = Celery("engines"), {}

    class Worker:
        def __init__(self, **options):
            given.update(options)
            self.exitcode = exitcode

        def start(self):
            run()

    app.Worker = Worker
    durable.serve(app, **options)
    return given


def shut_down(how="Warm"):
    signals.worker_shutting_down.send(sender="one", sig="", how=how, exitcode=1)


def test_passes_its_options_to_the_worker():
    options = {"concurrency": 2, "pool": "prefork", "queues": ["slow"]}
    assert serve(shut_down, grace="1m", **options) == options


def test_an_attempt_that_outlasts_the_grace_ends_by_a_cold_shutdown(quits):
    def stop_slowly():
        shut_down()
        shut_down()
        assert quits.wait(20)

    serve(stop_slowly, grace=0.01)


def test_a_cold_shutdown_is_requested_at_the_end_of_the_grace_only(quits):
    def stop_at_once():
        shut_down("Cold")
        assert not quits.wait(0.1)
        shut_down("Warm")

    serve(stop_at_once, grace=0.05)
    assert not quits.wait(0.2)


def test_the_status_of_a_stopped_worker_is_ignored():
    """Celery's is 1 after SIGINT."""
    assert serve(shut_down, exitcode=1, concurrency=1) == {"concurrency": 1}


def test_a_worker_that_ends_by_itself_returns():
    """By remote control."""
    assert serve(int, concurrency=1) == {"concurrency": 1}


def test_a_worker_that_fails_is_an_error():
    with pytest.raises(RuntimeError, match="because of an error"):
        serve(int, exitcode=1)


def test_an_error_of_the_worker_is_raised():
    def fail():
        raise OSError("refused")

    with pytest.raises(OSError, match="refused"):
        serve(fail)
    assert not signals.worker_shutting_down.receivers


class Child:
    """A child of a worker, which is this process, and how often SIGTERM ended it."""

    def __init__(self):
        self.signals = ChildSignals(worker=0)
        self.ended = threading.Event()

    def start_attempt(self):
        self.signals.protect(task_id="host")

    def terminate(self):
        os.kill(os.getpid(), signal.SIGTERM)

    def has_ended(self):
        return self.ended.wait(0.1)


@pytest.fixture
def child():
    child = Child()
    before = signal.signal(signal.SIGTERM, lambda *_: child.ended.set())
    yield child
    signal.signal(signal.SIGTERM, before)


def test_a_child_goes_on_while_its_worker_lets_attempts_end(child):
    child.start_attempt()
    child.signals.stop(warm=True)
    child.terminate()
    assert not child.has_ended()


def test_a_child_may_be_told_to_stop_shortly_before_its_worker(child):
    child.start_attempt()
    child.start_attempt()
    child.terminate()
    child.signals.stop(warm=True)
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.join(20)
    assert not child.has_ended()


def test_a_child_ends_when_its_worker_cuts_attempts_off(child):
    child.start_attempt()
    child.signals.stop(warm=True)
    child.signals.stop(warm=False)
    child.terminate()
    assert child.has_ended()


def test_a_child_ends_if_it_alone_is_told_to(child):
    """Celery revokes a running task in this way."""
    child.start_attempt()
    child.terminate()
    assert child.ended.wait(20)


def test_the_worker_itself_handles_its_signals_as_before(child):
    """A pool of threads runs the tasks in it."""
    ChildSignals(os.getpid()).protect()
    child.terminate()
    assert child.has_ended()
