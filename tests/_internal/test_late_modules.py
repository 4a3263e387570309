"""`tests/_core/test_deadlocks.py` has the same with real forks."""

import inspect
import os
import pickle
import threading

import pytest

from retrykit._internal import late_modules
from retrykit._internal.late_modules import import_late

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.mark.needs("threads")
def test_an_import_waits_while_another_thread_forks(monkeypatch):
    waits = []

    def sleep(_):
        waits.append(late_modules.importing[:])
        if len(waits) == 2:
            late_modules.forking.clear()

    monkeypatch.setattr(late_modules, "sleep", sleep)
    late_modules.before_fork()
    thread = threading.Thread(target=import_late, args=["json"])
    thread.start()
    thread.join()
    # It looks as if it was not importing, or the fork would wait for it.
    assert waits == [[], []]
    assert late_modules.importing == []


@pytest.mark.needs("threads")
def test_a_fork_waits_while_another_thread_imports(monkeypatch):
    begun, forking = threading.Event(), threading.Event()

    def import_module(name):
        begun.set()
        forking.wait()
        return name

    def sleep(_):
        forking.set()
        # However busy the machine is.
        thread.join(60)

    monkeypatch.setattr(late_modules, "import_module", import_module)
    monkeypatch.setattr(late_modules, "sleep", sleep)
    thread = threading.Thread(target=import_late, args=["json"])
    thread.start()
    begun.wait()
    late_modules.before_fork()
    assert late_modules.importing == []
    late_modules.after_fork()
    thread.join()


def test_an_import_within_an_import_does_not_wait(monkeypatch):
    def import_module(name):
        if name == "outer":
            # Another thread, which waits for the outer import.
            late_modules.forking.append(-1)
            return import_late("inner")
        return name

    monkeypatch.setattr(late_modules, "import_module", import_module)
    try:
        assert import_late("outer") == "inner"
    finally:
        late_modules.forking.clear()


def test_a_fork_does_not_wait_forever(monkeypatch):
    waits = []
    monkeypatch.setattr(late_modules, "sleep", waits.append)
    late_modules.importing.append(-1)
    try:
        late_modules.before_fork()
        late_modules.after_fork_in_child()
    finally:
        late_modules.importing.clear()
    assert sum(waits) == pytest.approx(5.0)
    assert late_modules.forking == []


def test_an_import_that_its_own_thread_forks_in_goes_on_in_the_child(monkeypatch):
    def import_module(name):
        late_modules.before_fork()
        late_modules.after_fork_in_child()
        return late_modules.importing[:]

    monkeypatch.setattr(late_modules, "import_module", import_module)
    assert import_late("json") == [threading.get_ident()]


def test_a_late_module_is_pickled_by_its_name():
    again = pickle.loads(pickle.dumps(late_modules.inspect))  # noqa: S301  our own
    assert again.signature is inspect.signature
