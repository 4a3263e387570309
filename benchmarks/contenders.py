"""The libraries to compare, as one table; `benchmarks.makers` configures them."""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, redirect_stderr
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import final

from benchmarks import makers
from benchmarks.makers import Maker, Terms

__all__ = ["ASLEEP", "ATTEMPTS", "CONTENDERS", "PATIENT", "RETRYKIT", "USUAL"]
__all__ += ["Contender", "Sleep", "State", "importable", "in_state", "installed"]

ATTEMPTS = 4
"""Maximum number of attempts of a call, so that three may fail."""

Sleep = Callable[[float], None]

USUAL = Terms(attempts=ATTEMPTS, first=0.5, cap=60.0, max_elapsed=60.0)
PATIENT = Terms(attempts=20, first=0.5, cap=60.0, max_elapsed=3600.0)

# Delays so long that none of thousands ends during a measurement.
ASLEEP = Terms(attempts=ATTEMPTS, first=1e6, cap=1e7, max_elapsed=1e9)

State = str
"""The state of the logs: a key of `STATES`."""

STATES = {
    "as installed": "Logging is not configured, and stderr goes to nowhere.",
    "quiet": "Logs are off in all of them.",
}


@contextmanager
def in_state(state: State) -> Iterator[None]:
    """Write to stderr as a process does whose stderr is /dev/null, or log nothing.

    Raises:
        RuntimeError: Logging is configured in this process.
    """
    if logging.root.handlers:
        msg = f"logging must not be configured, got {logging.root.handlers}"
        raise RuntimeError(msg)
    # Line by line, as stderr is written.
    with Path(os.devnull).open("w", 1, encoding="utf-8") as nowhere:
        logging.disable(logging.CRITICAL if state == "quiet" else logging.NOTSET)
        try:
            with redirect_stderr(nowhere):
                yield
        finally:
            logging.disable(logging.NOTSET)


@contextmanager
def _replace_sleep(sleep: Sleep) -> Iterator[None]:
    """Replace `time.sleep` and `asyncio.sleep`.

    All of these libraries look the function up whenever they sleep, so none needs
    another configuration; but backon does when it decorates.
    """

    async def asleep(delay: float) -> None:
        sleep(delay)

    original = time.sleep, asyncio.sleep
    time.sleep, asyncio.sleep = sleep, asleep  # type: ignore[assignment]
    try:
        yield
    finally:
        time.sleep, asyncio.sleep = original


@final
@dataclass(frozen=True, kw_only=True)
class Contender:
    """A library, or the hand-written loop.

    Attributes:
        name: The name of its distribution, or a variant of it.
        module: The module that users import; empty for the hand-written loop.
        make: Takes terms, and returns a decorator of functions.
        amake: The same for coroutine functions.
        ways: Other makers, by name: ``hook`` (called before each retry), ``observer``
            (every event), ``prometheus``, ``rules`` (with a hint and a budget),
            ``block`` and ``call``.
        logs: What it logs as installed.
        lines: Whether it then writes a line to stderr for each retry.
        stub: A context manager that replaces sleeping by a function of the delay.
        counts: Whether it can limit the number of attempts.
        variant: Whether it differs from another one only by its log.
    """

    name: str
    module: str
    make: Maker
    amake: Maker
    ways: Mapping[str, Maker] = field(default_factory=dict)
    logs: str = "nothing"
    lines: bool = False
    stub: Callable[[Sleep], AbstractContextManager[None]] = _replace_sleep
    counts: bool = True
    variant: bool = False

    def way(self, name: str) -> Maker | None:
        """Return another maker; that of the hand-written loop is always the same."""
        return self.ways.get(name, None if self.module else self.make)


RETRYKIT = Contender(
    name="retrykit",
    module="retrykit",
    make=makers.retrykit,
    amake=makers.retrykit,
    logs="each retry as a warning, which stderr shows",
    lines=True,
    ways={
        "hook": makers.retrykit_hook,
        "observer": makers.retrykit_observer,
        "prometheus": makers.retrykit_prometheus,
        "rules": makers.retrykit_rules,
        "block": makers.retrykit_block,
        "call": makers.retrykit_call,
    },
)

CONTENDERS = (
    Contender(
        name="hand-written", module="", make=makers.by_hand, amake=makers.by_hand_async
    ),
    RETRYKIT,
    Contender(
        name="tenacity",
        module="tenacity",
        make=makers.tenacity,
        amake=makers.tenacity,
        ways={
            "hook": makers.tenacity_hook,
            "observer": makers.tenacity_observer,
            "block": makers.tenacity_block,
            "call": makers.tenacity_call,
        },
    ),
    Contender(
        name="tenacity, logging",
        module="tenacity",
        make=makers.tenacity_logging,
        amake=makers.tenacity_logging,
        logs="each retry as a warning, by its `before_sleep_log`",
        lines=True,
        variant=True,
    ),
    Contender(
        name="stamina",
        module="stamina",
        make=makers.stamina,
        amake=makers.stamina,
        logs="each retry as a warning, which stderr shows, where neither structlog nor "
        "prometheus-client is installed",
        lines=True,
        ways={
            "hook": makers.stamina_hook,
            "prometheus": makers.stamina_prometheus,
            "block": makers.stamina_block,
            "call": makers.stamina_call,
        },
    ),
    Contender(
        name="backoff",
        module="backoff",
        make=makers.backoff,
        amake=makers.backoff,
        logs="each retry as information and giving up as an error, which no handler "
        "shows",
        ways={
            "hook": makers.backoff_hook,
            "observer": makers.backoff_observer,
            "call": makers.backoff_call,
        },
    ),
    Contender(
        name="google-api-core",
        module="google.api_core.retry",
        make=makers.google,
        amake=makers.google_async,
        logs="each retry for debugging, which is not enabled",
        counts=False,
        ways={
            "hook": makers.google_hook,
            "call": makers.in_each_call(makers.google),
        },
    ),
    Contender(
        name="redress",
        module="redress",
        make=makers.redress,
        amake=makers.redress,
        ways={
            "hook": makers.redress_hook,
            "observer": makers.redress_observer,
            "prometheus": makers.redress_prometheus,
            "call": makers.redress_call,
        },
    ),
    Contender(
        name="nopanic",
        module="nopanic",
        make=makers.nopanic,
        amake=makers.nopanic,
        ways={
            "hook": makers.nopanic_hook,
            "observer": makers.nopanic_observer,
            "call": makers.nopanic_call,
        },
    ),
    Contender(
        name="resilix",
        module="resilix",
        make=makers.resilix,
        amake=makers.resilix,
        ways={
            "hook": makers.resilix_hook,
            "observer": makers.resilix_observer,
            "call": makers.in_each_call(makers.resilix),
        },
    ),
    Contender(
        name="opnieuw",
        module="opnieuw",
        make=makers.opnieuw,
        amake=makers.opnieuw,
        logs="each retry for debugging, which is not enabled, though it makes the text",
        ways={"call": makers.in_each_call(makers.opnieuw)},
    ),
    Contender(
        name="backon",
        module="backon",
        make=makers.backon,
        amake=makers.backon,
        logs="each retry as information, which is not enabled, and giving up as an "
        "error, which no handler shows",
        ways={
            "hook": makers.backon_hook,
            "observer": makers.backon_observer,
            "block": makers.backon_block,
            "call": makers.backon_call,
        },
    ),
)


def installed(state: State = "as installed") -> list[Contender]:
    """Return the contenders that are installed, the hand-written loop first.

    Args:
        state: The state of the logs; variants are measured as installed alone.
    """
    return [
        each
        for each in CONTENDERS
        if (not each.module or importable(each.module))
        and not (each.variant and state == "quiet")
    ]


def importable(module: str) -> bool:
    """Return whether a module can be imported."""
    try:
        import_module(module)
    except ImportError:
        return False
    return True
