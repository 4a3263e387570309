"""A client with a retried function."""

from retrykit import retry


@retry(on=ConnectionError, max_attempts=4)
def fetch(url):
    raise ConnectionError(url)
