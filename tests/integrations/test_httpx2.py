"""The tests of httpx, with httpx2 in its place."""

import inspect
import re
from pathlib import Path

import httpx
import httpx2
import pytest

from retrykit.integrations import httpx as for_httpx, httpx2 as for_httpx2

HERE = Path(__file__).parent
FILES = ["test_httpx.py", "test_httpx_abandoned.py", "test_httpx_bodies.py"]
SHARED = {}
for file in FILES:
    source = re.sub(r"\bhttpx\b", "httpx2", (HERE / file).read_text("utf-8"))
    names = {"__name__": __name__}
    exec(compile(source, file, "exec"), names)  # noqa: S102  our own tests
    for name, value in names.items():
        if name.startswith(("test_", "Test")):
            assert name not in SHARED, f"{file} has another {name}"
            SHARED[name] = value
globals().update(SHARED)

ERRORS = sorted(
    name
    for name, kind in vars(httpx).items()
    if inspect.isclass(kind) and issubclass(kind, Exception)
)


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_is_transient_in_both_libraries_or_in_none(name):
    def error(library):
        kind = getattr(library, name)
        if issubclass(kind, library.HTTPStatusError):
            return kind("", request=None, response=library.Response(503))
        empty = (
            issubclass(kind, library.StreamError) and kind is not library.StreamError
        )
        return kind() if empty else kind("failed")

    assert for_httpx2.transient(error(httpx2)) is for_httpx.transient(error(httpx))
    assert not for_httpx2.transient(error(httpx))


@pytest.mark.parametrize("status", [200, 404, 408, 413, 425, 429, 500, 501, 503, 504])
def test_a_status_is_transient_in_both_libraries_or_in_none(status):
    assert for_httpx2.transient(httpx2.Response(status)) is for_httpx.transient(
        httpx.Response(status)
    )


def test_a_transport_of_one_library_is_rejected_by_the_other():
    for retries, library in [(for_httpx, httpx2), (for_httpx2, httpx)]:
        with pytest.raises(ValueError, match="transport must be a BaseTransport"):
            retries.RetryTransport(transport=library.HTTPTransport())
        with pytest.raises(ValueError, match=r"transport must be an? AsyncBaseT"):
            retries.AsyncRetryTransport(transport=library.AsyncHTTPTransport())
