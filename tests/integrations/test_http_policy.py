"""Parts that the HTTP integrations share: policies, methods and request bodies."""

import io
import pickle
import ssl

import httpx
import pytest

from retrykit import ConfigError, Policy, hints, retrying
from retrykit.integrations import httpx as retries
from retrykit.integrations._http.bodies import build_rewind
from retrykit.integrations._http.transport import ReleasingCondition
from retrykit.integrations.aiohttp import RetryMiddleware
from retrykit.integrations.grpc import RetryInterceptor
from retrykit.integrations.httpx import AsyncRetryTransport, RetryTransport, transient
from retrykit.integrations.requests import RetryAdapter

QUICK = Policy(schedule=[0, 0])


def test_adds_the_condition_and_the_hint_to_a_policy():
    merged = retries.policy(Policy(max_attempts=3))
    assert merged == Policy(
        max_attempts=3, on=transient, on_result=transient, hint=hints.retry_after()
    )


def test_keeps_the_on_and_hint_of_a_policy():
    hint = hints.milliseconds("retry-after-ms")
    merged = retries.policy(Policy(on=httpx.ConnectError, hint=hint))
    assert (merged.on, merged.hint) == (httpx.ConnectError, hint)
    assert merged.on_result is transient


def test_keeps_the_on_result_of_a_policy():
    def is_teapot(response): ...

    merged = retries.policy(Policy(on_result=is_teapot))
    assert (merged.on, merged.on_result) == (transient, is_teapot)
    assert merged.hint == retries.retry_after


def test_does_not_restore_a_setting_that_was_removed():
    merged = retries.policy(hint=None)
    assert merged.hint is None
    assert retries.policy(merged) == merged
    assert repr(RetryTransport(merged)) == f"RetryTransport({merged!r})"


def test_changes_win_over_the_clients_defaults():
    assert retries.policy(QUICK, hint=None, max_attempts=2).hint is None


def test_a_policy_with_its_condition_can_be_pickled():
    assert pickle.loads(pickle.dumps(retries.policy())) == retries.policy()  # noqa: S301


@pytest.mark.parametrize(
    "error",
    [
        httpx.ConnectError,
        httpx.ConnectTimeout,
        httpx.ReadTimeout,
        httpx.WriteTimeout,
        httpx.PoolTimeout,
        httpx.ReadError,
        httpx.WriteError,
        httpx.CloseError,
        httpx.RemoteProtocolError,
    ],
)
def test_connection_errors_are_transient(error):
    assert transient(error("down"))


@pytest.mark.parametrize(
    "error",
    [
        httpx.LocalProtocolError,
        httpx.UnsupportedProtocol,
        httpx.ProxyError,
        httpx.DecodingError,
        httpx.TooManyRedirects,
        httpx.InvalidURL,
        ValueError,
    ],
)
def test_other_errors_are_not_transient(error):
    assert not transient(error("wrong"))


def test_a_rejected_certificate_is_not_transient():
    error = httpx.ConnectError("certificate verify failed")
    error.__cause__ = OSError()
    error.__cause__.__context__ = ssl.SSLCertVerificationError("self-signed")
    assert not transient(error)


def test_a_cycle_of_causes_is_searched_once():
    error, other = httpx.ConnectError("one"), OSError("other")
    error.__cause__, other.__cause__ = other, error
    assert transient(error)


def is_sent(times, method="GET", headers=None, **settings):
    """Return whether a request that is answered with 503 is sent so often."""
    seen = []

    def respond(request):
        seen.append(request)
        return httpx.Response(503)

    transport = RetryTransport(QUICK, httpx.MockTransport(respond), **settings)
    request = httpx.Request("GET", "http://127.0.0.1/", headers=headers)
    request.method = method
    transport.handle_request(request)
    return len(seen) == times


def test_an_empty_idempotency_key_is_ignored():
    assert is_sent(1, "POST", {"Idempotency-Key": ""})
    assert is_sent(3, "POST", {"idempotency-key": "1"})


def test_methods_are_case_insensitive():
    assert is_sent(3, "put")
    assert is_sent(1, "post")
    assert is_sent(3, "Post", methods=["poST"])


@pytest.mark.parametrize("methods", ["POST", [], ["GET", 3], [""]], ids=repr)
def test_an_invalid_set_of_methods_is_rejected(methods):
    with pytest.raises(ConfigError, match="methods must be a set of HTTP methods"):
        RetryTransport(methods=methods)


def test_the_repr_of_transient_is_its_name():
    assert repr(transient) == "transient"


def test_the_repr_of_a_wrapped_condition_is_that_of_the_users():
    def is_teapot(response): ...

    assert repr(ReleasingCondition(is_teapot, transient)).endswith("is_teapot")


@pytest.mark.parametrize(
    "body",
    [None, "text", b"bytes", bytearray(b"bytes"), [b"a", b"b"], (b"a", b"b")],
    ids=repr,
)
def test_a_body_in_memory_needs_no_rewind(body):
    assert build_rewind(body)() is None


def test_a_file_is_rewound_to_its_initial_position():
    file = io.BytesIO(b"head, body")
    file.seek(6)
    back = build_rewind(file)
    assert [file.read(), back(), file.read()] == [b"body", 6, b"body"]


class Pipe(io.RawIOBase):
    """A pipe whose `seekable` returns a given value, or fails."""

    def __init__(self, seekable):
        self._seekable = seekable

    def seekable(self):
        if self._seekable is None:
            raise ValueError("closed")
        return self._seekable

    def tell(self):
        raise OSError("it is a pipe")


class OneShotWrapper:
    """A re-iterable wrapper, such as of a progress bar, of a one-shot iterator."""

    def __init__(self, pieces):
        self._pieces = pieces

    def __iter__(self):
        yield from self._pieces


async def async_pieces():
    yield b"once"


@pytest.mark.parametrize(
    "body",
    [
        Pipe(False),
        Pipe(True),
        Pipe(None),
        iter([b"once"]),
        OneShotWrapper(iter([b"once"])),
        async_pieces(),
        object(),
    ],
    ids=["pipe", "liar", "closed", "iterator", "wrapper", "async generator", "unknown"],
)
def test_a_one_shot_body_cannot_be_rewound(body):
    assert build_rewind(body) is None


@pytest.mark.parametrize(
    "kind",
    [
        RetryTransport,
        AsyncRetryTransport,
        RetryAdapter,
        RetryMiddleware,
        RetryInterceptor,
    ],
    ids=["httpx", "httpx, async", "requests", "aiohttp", "grpc"],
)
def test_the_repr_of_a_transport_shows_its_policy(kind):
    shown = repr(kind(max_attempts=7))
    assert shown.startswith(f"{kind.__name__}(Policy(max_attempts=7, on=")


def test_a_policy_works_in_a_block_that_sets_no_result():
    for attempt in retrying(retries.policy()):
        with attempt:
            page = "page"
    assert page == "page"


async def note(_event):
    pass


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"fallback": 0}, "fallback must be left out where no function"),
        ({"observers": [note]}, "observers must be a sync function"),
    ],
    ids=["fallback", "observer"],
)
@pytest.mark.parametrize("client", [RetryTransport, RetryAdapter])
def test_a_client_rejects_what_it_cannot_do(client, settings, message):
    with pytest.raises(ConfigError, match=message):
        client(Policy(**settings))
