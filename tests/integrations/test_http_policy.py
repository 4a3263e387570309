"""What the parts are made of that the HTTP clients have in common."""

import io
import pickle
import ssl

import httpx
import pytest

from retrykit import ConfigError, Policy, hints
from retrykit.integrations import httpx as retries
from retrykit.integrations._http.bodies import build_rewind
from retrykit.integrations._http.transport import ReleasingCondition
from retrykit.integrations.aiohttp import RetryMiddleware
from retrykit.integrations.grpc import RetryInterceptor
from retrykit.integrations.httpx import AsyncRetryTransport, RetryTransport, transient
from retrykit.integrations.requests import RetryAdapter

QUICK = Policy(schedule=[0, 0], max_attempts=9)


def test_joins_the_condition_and_the_hint_to_a_policy():
    joined = retries.policy(Policy(max_attempts=3))
    assert joined == Policy(
        max_attempts=3, on=transient, on_result=transient, hint=hints.retry_after()
    )


def test_keeps_what_a_policy_says_of_errors_and_hints():
    hint = hints.milliseconds("retry-after-ms")
    joined = retries.policy(Policy(on=httpx.ConnectError, hint=hint))
    assert (joined.on, joined.hint) == (httpx.ConnectError, hint)
    assert joined.on_result is transient


def test_keeps_what_a_policy_says_of_results_and_joins_the_rest():
    def is_teapot(response): ...

    joined = retries.policy(Policy(on_result=is_teapot))
    assert (joined.on, joined.on_result) == (transient, is_teapot)
    assert joined.hint == retries.retry_after


def test_what_was_taken_out_of_a_clients_policy_is_not_joined_again():
    given = retries.policy(hint=None)
    assert given.hint is None
    assert retries.policy(given) == given
    assert repr(RetryTransport(given)) == f"RetryTransport({given!r})"


def test_changes_hold_whatever_is_joined():
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
def test_errors_of_connections_pass(error):
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
def test_other_errors_do_not(error):
    assert not transient(error("wrong"))


def test_a_certificate_that_is_refused_stays_refused():
    error = httpx.ConnectError("certificate verify failed")
    error.__cause__ = OSError()
    error.__cause__.__context__ = ssl.SSLCertVerificationError("self-signed")
    assert not transient(error)


def test_looks_for_a_certificate_in_a_ring_of_errors_once():
    error, other = httpx.ConnectError("one"), OSError("other")
    error.__cause__, other.__cause__ = other, error
    assert transient(error)


def sent(times, method="GET", headers=None, **given):
    """Return how often a request is sent that is answered with 503."""
    seen = []

    def answered(request):
        seen.append(request)
        return httpx.Response(503)

    transport = RetryTransport(QUICK, httpx.MockTransport(answered), **given)
    request = httpx.Request("GET", "http://127.0.0.1/", headers=headers)
    request.method = method
    transport.handle_request(request)
    return len(seen) == times


def test_an_empty_key_is_none():
    assert sent(1, "POST", {"Idempotency-Key": ""})
    assert sent(3, "POST", {"idempotency-key": "1"})


def test_a_method_is_the_same_in_any_case():
    assert sent(3, "put")
    assert sent(1, "post")
    assert sent(3, "Post", methods=["poST"])


@pytest.mark.parametrize("methods", ["POST", [], ["GET", 3], [""]], ids=repr)
def test_what_is_no_set_of_methods_is_refused(methods):
    with pytest.raises(ConfigError, match="methods must be a set of HTTP methods"):
        RetryTransport(methods=methods)


def test_says_what_it_is():
    assert repr(transient) == "transient"


def test_a_condition_of_the_users_is_shown_as_it_was_written():
    def is_teapot(response): ...

    assert repr(ReleasingCondition(is_teapot, transient)).endswith("is_teapot")


@pytest.mark.parametrize(
    "body",
    [None, "text", b"bytes", bytearray(b"bytes"), [b"a", b"b"], (b"a", b"b")],
    ids=repr,
)
def test_what_is_in_memory_needs_nothing_to_be_sent_again(body):
    assert build_rewind(body)() is None


def test_a_file_goes_back_to_where_it_was_when_it_was_given():
    file = io.BytesIO(b"head, body")
    file.seek(6)
    back = build_rewind(file)
    assert [file.read(), back(), file.read()] == [b"body", 6, b"body"]


class Pipe(io.RawIOBase):
    """A file that says it can seek, or says nothing at all."""

    def __init__(self, seekable):
        self._seekable = seekable

    def seekable(self):
        if self._seekable is None:
            raise ValueError("closed")
        return self._seekable

    def tell(self):
        raise OSError("it is a pipe")


class Progress:
    """What begins anew each time, and has nothing left the second time."""

    def __init__(self, pieces):
        self._pieces = pieces

    def __iter__(self):
        yield from self._pieces


async def awaited():
    yield b"once"


@pytest.mark.parametrize(
    "body",
    [
        Pipe(False),
        Pipe(True),
        Pipe(None),
        iter([b"once"]),
        Progress(iter([b"once"])),
        awaited(),
        object(),
    ],
    ids=["pipe", "liar", "closed", "iterator", "wrapper", "async generator", "unknown"],
)
def test_what_can_be_read_once_only_cannot_be_sent_again(body):
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
def test_what_sends_again_shows_its_policy(kind):
    shown = repr(kind(max_attempts=7))
    assert shown.startswith(f"{kind.__name__}(Policy(max_attempts=7, on=")
