"""Claims, and the answers of a library to them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, Protocol, final

from benchmarks.makers import Decorator

__all__ = ["CLAIMS", "NO", "YES", "Answer", "Library", "Program", "Retry"]
__all__ += ["folder_of", "partly", "partly_if", "yes_if"]

CLAIMS = {
    "calls": "Functions and coroutines",
    "trio": "Trio",
    "blocks": "Blocks of code",
    "streams": "Generators, after an error in the middle",
    "jitter": "Jitter by default",
    "limit": "A limit by default",
    "deadline": "Time limit that no delay exceeds",
    "attempt_timeout": "Timeout for each attempt, coroutines",
    "sync_timeout": "Timeout for each attempt, functions",
    "original_error": "Raises the original exception",
    "history": "All attempts on the error",
    "retry_after": "`Retry-After` of an answer",
    "budget": "Retry budget",
    "breaker": "Circuit breaker",
    "hedging": "Hedged requests",
    "rate_limit": "Rate limit",
    "concurrency": "Concurrency limit",
    "single_flight": "Equal calls at once share a result",
    "isolation": "Kills a function that hangs, in a process",
    "nested": "Nested retries do not multiply",
    "cancellation": "Cancellation is never retried, even by `BaseException`",
    "testing": "Tests without waiting",
    "typed": "Types survive the decorator",
    "preview": "Shows or checks a policy before it runs",
    "config": "Policies in files",
    "durable": "Retries that survive a restart",
    "metrics": "Metrics for Prometheus or OpenTelemetry",
    "dependencies": "No dependencies",
}
"""The title of each claim, by its name."""


class Answer(NamedTuple):
    """A library's answer to a claim.

    Attributes:
        verdict: ``yes``, ``no``, ``partly`` or ``unclear``.
        reason: A few words, which the table shows unless the verdict is yes or no.
    """

    verdict: str
    reason: str = ""

    def __str__(self) -> str:
        """Return the text of a cell of the table."""
        return ": ".join(filter(None, self))


YES = Answer("yes")
NO = Answer("no")

Program = Callable[[], Answer]


class Retry(Protocol):
    """Makes a decorator that retries, with equal delays and otherwise the defaults."""

    def __call__(
        self,
        on: type[BaseException] = ...,
        *,
        attempts: int = ...,
        delay: float = ...,
        limit: float = ...,
        awaits: bool = ...,
    ) -> Decorator:
        """Return the decorator.

        Args:
            on: The errors to retry.
            attempts: The maximum number of attempts.
            delay: Seconds between them.
            limit: The time limit of a call, in seconds.
            awaits: Whether it decorates a coroutine function.
        """


@final
@dataclass(frozen=True)
class Library:
    """A library that is compared.

    Attributes:
        name: The name of its distribution.
        module: The module that users import.
        retry: Its decorator, configured.
        bare: Its decorator for `ConnectionError` with nothing but defaults.
        programs: Programs of its own, by the name of the claim.
    """

    name: str
    module: str
    retry: Retry
    bare: Callable[[], Decorator]
    programs: Mapping[str, Program] = field(default_factory=dict)


def partly(reason: str) -> Answer:
    """Return the answer that something is true with a reservation."""
    return Answer("partly", reason)


def partly_if(condition: object, reason: str) -> Answer:
    """Return partly or no."""
    return partly(reason) if condition else NO


def yes_if(condition: object) -> Answer:
    """Return yes or no."""
    return YES if condition else NO


def folder_of(module: str) -> Path:
    """Return the folder of a package."""
    path = import_module(module).__file__
    return Path(path or "").parent
