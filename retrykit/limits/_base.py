"""Protocol of limits: leases and refusals."""

from abc import ABC, abstractmethod
from typing import NamedTuple

__all__ = ["Lease", "Limit", "Refusal"]


class Refusal(NamedTuple):
    """The answer of a limit that does not allow an attempt now.

    Attributes:
        reason: Why, in words.
        retry_in: When the limit will allow one, in seconds, >= 0; None if that is
            unknown.
    """

    reason: str
    retry_in: float | None


class Lease(ABC):
    """Permission to make one attempt, whose outcome is reported to it.

    The first report counts, and others have no effect. A lease that is dropped without
    a report gives its place back, as one that is ignored. Any thread may report.

    Attributes:
        delay: How long to wait before the attempt, in seconds, >= 0.
    """

    __slots__ = ("__weakref__",)

    delay: float = 0.0

    @property
    @abstractmethod
    def generation(self) -> int:
        """The number of the state that gave it, from 0.

        Once the limit is in another state, a report counts for its metrics alone.
        """

    @abstractmethod
    def succeeded(self) -> None:
        """Report that the attempt succeeded."""

    @abstractmethod
    def failed(self, error: Exception | None = None) -> None:
        """Report that the attempt failed.

        Args:
            error: Its error; None if its result was rejected.
        """

    @abstractmethod
    def ignored(self) -> None:
        """Report that the attempt says nothing: it was cancelled, or never made."""


class Limit(ABC):
    """Allows or refuses attempts. Many threads and tasks may ask at once.

    Attributes:
        key: The text of its key in a `Registry`; None without one.
    """

    key: str | None = None

    @property
    @abstractmethod
    def state(self) -> str:
        """The name of its current state, for gauges."""

    @abstractmethod
    def acquire(self) -> Lease | Refusal:
        """Ask to make one attempt, without waiting.

        Returns:
            A lease, to which the outcome of the attempt must be reported; or a refusal.
        """
