"""A client that retries with tenacity, which is not installed here."""

from tenacity import retry, stop_after_attempt, wait_fixed


@retry(stop=stop_after_attempt(3), wait=wait_fixed(1), reraise=True)
def fetch(url): ...


@retry(retry_error_cls=LookupError)
def find(url): ...
