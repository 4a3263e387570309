"""The predicate of failures of HTTP, with stand-ins for the clients."""

import errno
import pickle
import socket
import ssl
from functools import partial
from http import HTTPStatus
from types import SimpleNamespace
from urllib.error import HTTPError, URLError

import pytest

from retrykit import ConfigError, Policy, RetryError
from retrykit.conditions import HttpFailures
from retrykit.config.rendering import to_python

FAILED = HttpFailures(["5xx", 429])
LOST = HttpFailures(connections=True)
UNPROCESSED = HttpFailures(unprocessed=True)


class Response:
    """A response, or an error, with some attributes."""

    def __init__(self, **attributes):
        vars(self).update(attributes)

    def __repr__(self):
        return ", ".join(f"{key}={value!r}" for key, value in vars(self).items())

    def __bool__(self):
        # As that of requests: true if the status is no failure.
        return False


class StatusError(Response, Exception):
    """An error with attributes."""

    def __repr__(self):
        return f"error with {super().__repr__()}"


def error_of(module, name, *bases, cause=None, args=()):
    """Return an error of a class with a name, in a module of a client."""
    kind = type(name, bases or (Exception,), {"__module__": module})
    error = kind(*args)
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "outcome",
    [
        Response(status_code=503),
        Response(status=429),
        Response(code=500),
        Response(status_code=HTTPStatus.BAD_GATEWAY),
        StatusError(status=599),
        StatusError(response=Response(status_code=503)),
        StatusError(code="busy", response=Response(status=503)),
        StatusError(status_code=True, code=503),
        StatusError(status=3, code=503),
        HTTPError("http://[::1]/", 503, "busy", {}, None),
    ],
    ids=repr,
)
def test_a_status_is_read_from_an_error_or_a_response(outcome):
    assert FAILED(outcome)
    assert not HttpFailures([501])(outcome)
    assert not LOST(outcome)


@pytest.mark.parametrize(
    "outcome",
    [
        *(None, 503, "503", {"status": 503}, ValueError(503)),
        Response(status_code=404),
        Response(status_code="503"),
        Response(status_code=5030),
        StatusError(response=None),
        StatusError(code=int),
    ],
    ids=repr,
)
def test_other_outcomes_are_no_failures(outcome):
    assert not FAILED(outcome)
    assert not LOST(outcome)


def test_the_own_status_of_an_error_comes_first():
    assert not FAILED(StatusError(status_code=404, response=Response(status=503)))


def test_a_property_that_fails_is_no_status():
    class ClosedError(Exception):
        @property
        def response(self):
            raise RuntimeError

    assert not FAILED(ClosedError())


@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError(),
        socket.gaierror(),
        OSError(errno.ENETUNREACH, "Network is unreachable"),
        URLError(ConnectionRefusedError()),
        error_of("httpx", "ConnectTimeout"),
        error_of("httpx2", "ConnectError"),
        error_of("aiohttp.client_exceptions", "ClientConnectorError", OSError),
        error_of(
            "requests.exceptions",
            "ConnectionError",
            args=[URLError(error_of("urllib3.exceptions", "NewConnectionError"))],
        ),
        # A refused stream of HTTP/2.
        error_of(
            "httpx",
            "RemoteProtocolError",
            cause=error_of(
                "httpcore", "RemoteProtocolError", args=[Response(error_code=7)]
            ),
        ),
    ],
    ids=repr,
)
def test_a_request_that_no_server_has_processed(error):
    assert LOST(error)
    assert UNPROCESSED(error)
    assert not FAILED(error)


@pytest.mark.parametrize(
    "error",
    [
        ConnectionResetError(),
        TimeoutError(),
        URLError(ConnectionResetError()),
        error_of("httpx", "ReadError", cause=ConnectionResetError()),
        error_of("httpx", "RemoteProtocolError", args=[Response(error_code=2)]),
        error_of("aiohttp.client_exceptions", "ServerDisconnectedError"),
        error_of("urllib3.exceptions", "ProtocolError", args=["aborted", ValueError()]),
        error_of("http.client", "IncompleteRead"),
    ],
    ids=repr,
)
def test_a_lost_connection_may_have_been_used(error):
    assert LOST(error)
    assert not UNPROCESSED(error)


def test_a_rejected_certificate_is_no_failure():
    error = error_of("httpx", "ConnectError", cause=ssl.SSLCertVerificationError())
    assert not LOST(error)
    assert not UNPROCESSED(error)


def test_an_error_that_was_dealt_with_before_is_no_failure():
    error = ValueError()
    error.__context__ = ConnectionResetError()
    assert not LOST(error)


def test_a_cycle_of_causes_is_searched_once():
    error, other = ValueError(), ValueError()
    error.__cause__, other.__cause__ = other, error
    assert not LOST(error)


def test_other_arguments_than_those_of_errors_are_left_alone():
    class OddError(Exception):
        args = None

    assert not LOST(OddError(ConnectionResetError()))


@pytest.mark.parametrize("statuses", ["5xx", ["503"], [True], [99], [600], ["6xx"], 5])
def test_a_wrong_status_is_refused(statuses):
    with pytest.raises(ConfigError, match="statuses must be a list of statuses"):
        HttpFailures(statuses)


def test_something_must_be_a_failure():
    with pytest.raises(ConfigError, match=r"at least one, .*or set connections=True"):
        HttpFailures([])


def test_is_a_value():
    copy = pickle.loads(pickle.dumps(HttpFailures([503, "5xx", 503], unprocessed=True)))  # noqa: S301
    assert copy == HttpFailures((503, "5xx"), unprocessed=True)
    assert (copy.statuses, copy.connections) == ((503, "5xx"), False)


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (FAILED, "HttpFailures(['5xx', 429])"),
        (
            HttpFailures([503], connections=True),
            "HttpFailures([503], connections=True)",
        ),
        (UNPROCESSED, "HttpFailures([], unprocessed=True)"),
    ],
    ids=["statuses", "both", "unprocessed"],
)
def test_is_written_as_python(condition, text):
    source = to_python("p", Policy(on=condition, on_result=condition, max_attempts=3))
    assert "from retrykit.conditions import HttpFailures\n" in source
    assert f"on={text}, on_result={text}" in source


class ClosedResponse:
    """A response that tells how it was closed; of httpx, if it has a stream."""

    def __init__(self, *names, stream=None):
        self.closed = []
        self.status_code = 503
        self.stream = stream
        for name in names:
            setattr(self, name, partial(self.closed.append, name))


@pytest.mark.parametrize(
    ("response", "closed"),
    [
        (ClosedResponse("close"), ["close"]),
        (ClosedResponse("close", "release"), ["release"]),
        (ClosedResponse("close", "aclose", stream=[]), ["close"]),
        (ClosedResponse("close", "aclose", stream=SimpleNamespace()), ["aclose"]),
        (ClosedResponse(), []),
    ],
)
def test_a_rejected_response_is_closed_before_the_next_attempt(response, closed):
    failed = HttpFailures([503])
    answers = iter([response, ClosedResponse()])
    with pytest.raises(RetryError):
        Policy(on_result=failed, on=(), schedule=[0]).call(lambda: next(answers))
    assert response.closed == closed
