# What retrykit uses of Airflow, for type checkers where that is not installed: it
# has 130 packages. Against Airflow's own types .ci/run checks the leaf, too.

from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

class RetryDecision:
    @classmethod
    def fail(cls, reason: str | None = None) -> RetryDecision: ...
    @classmethod
    def retry(
        cls, delay: timedelta | None = None, reason: str | None = None
    ) -> RetryDecision: ...
    @classmethod
    def default(cls) -> RetryDecision: ...

class RetryPolicy(ABC):
    @abstractmethod
    def evaluate(
        self,
        exception: BaseException,
        try_number: int,
        max_tries: int,
        context: Mapping[str, Any] | None = None,
    ) -> RetryDecision: ...
    def serialize(self) -> dict[str, Any]: ...
    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> RetryPolicy: ...
