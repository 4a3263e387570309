"""No thread waits for another one that waits for it, in a call or in a fork.

Each script is a new process that ends by itself, or by its alarm if it hangs.
"""

import os
import textwrap

import pytest

from tests._support.new_process import run_python

START = """
import os, signal, sys, threading
signal.alarm(10)
os.register_at_fork(after_in_child=lambda: signal.alarm(5))
from retrykit import retry, schedules

@retry(on=OSError, schedule=schedules.constant(0), max_attempts=2, fallback=None)
def fail():
    # The cause makes it no common failure.
    raise OSError("down") from ValueError()

def wait(pid):
    print("the child ended with", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""

# A logger that tells when a thread is about to take the lock of logging.
LOGGER = """
asked, taken = threading.Event(), threading.Event()

class Logger(logging.Logger):
    def isEnabledFor(self, level):
        if threading.current_thread() is not threading.main_thread():
            asked.set()
            taken.wait()
        return super().isEnabledFor(level)

logging.setLoggerClass(Logger)
fail()
# It forgets which levels are enabled.
logging.getLogger().setLevel("WARNING")
thread = threading.Thread(target=fail)
"""


def run(tmp_path, *parts):
    ended = run_python("".join(map(textwrap.dedent, (START, *parts))), tmp_path)
    assert ended.code == 0, ended.err
    return ended


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.mark.needs("threads")
def test_a_handler_that_retries_is_configured_while_a_call_fails(tmp_path):
    ended = run(
        tmp_path,
        "import logging.config\n",
        LOGGER,
        """
        class Handler(logging.Handler):
            def __init__(self):
                super().__init__()
                thread.start()
                asked.wait()
                taken.set()
                fail()

        # It holds the lock of logging while it makes the handler.
        logging.config.dictConfig({
            "version": 1,
            "handlers": {"own": {"()": Handler}},
            "root": {"handlers": ["own"]},
            "disable_existing_loggers": False,
        })
        thread.join()
        print("configured")
        """,
    )
    assert ended.out == "configured\n"


@pytest.mark.needs("processes", "threads")
@needs_fork
def test_a_process_forks_while_a_call_fails(tmp_path):
    ended = run(
        tmp_path,
        """
        # Run in reverse order: after the lock of logging is taken, before ours.
        os.register_at_fork(before=lambda: taken.set())
        import logging
        """,
        LOGGER,
        """
        thread.start()
        asked.wait()
        pid = os.fork()
        if not pid:
            fail()
            os._exit(0)
        wait(pid)
        thread.join()
        """,
    )
    assert ended.out == "the child ended with 0\n"


# A module whose import begins before a fork, and goes on after the fork has begun.
FINDER = """
from importlib.machinery import PathFinder
begun, forking = threading.Event(), threading.Event()

class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != NAME:
            return None
        spec = PathFinder.find_spec(name, path)
        execute = spec.loader.exec_module
        def exec_module(module):
            begun.set()
            forking.wait()
            IN_THE_IMPORT()
            execute(module)
        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, Finder)
"""


@pytest.mark.needs("processes", "threads")
@needs_fork
def test_a_process_forks_while_retrykit_imports_a_module(tmp_path):
    ended = run(
        tmp_path,
        """
        import retrykit
        NAME = "retrykit.presets._reference"
        forked = threading.Event()
        os.register_at_fork(after_in_parent=forked.set)
        # The fork waits for the import; if not, the child has half of the module.
        IN_THE_IMPORT = lambda: forked.wait(0.3)
        """,
        FINDER,
        """
        thread = threading.Thread(target=lambda: retrykit.presets.google())
        # Run in reverse order: before the fork waits for the import.
        os.register_at_fork(before=forking.set)
        thread.start()
        begun.wait()
        pid = os.fork()
        if not pid:
            retrykit.presets.google()
            os._exit(0)
        wait(pid)
        thread.join()
        """,
    )
    assert ended.out == "the child ended with 0\n"


@pytest.mark.needs("processes", "threads")
@needs_fork
def test_a_process_forks_while_an_import_logs(tmp_path):
    ended = run(
        tmp_path,
        """
        os.register_at_fork(before=lambda: forking.set())
        import logging
        NAME, IN_THE_IMPORT = "inspect", lambda: logging.getLogger("new")
        """,
        FINDER,
        """
        thread = threading.Thread(target=lambda: __import__("inspect"))
        thread.start()
        begun.wait()
        pid = os.fork()
        if not pid:
            fail()
            os._exit(0)
        wait(pid)
        thread.join()
        """,
    )
    assert ended.out == "the child ended with 0\n"


@pytest.mark.needs("processes")
@needs_fork
def test_a_fork_imports_and_prints_nothing(tmp_path):
    ended = run(
        tmp_path,
        """
        before = {*sys.modules}
        pid = os.fork()
        if not pid:
            os._exit(len({*sys.modules} - before))
        wait(pid)
        """,
    )
    assert ended[1:] == ("the child ended with 0\n", "")
