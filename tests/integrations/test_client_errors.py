"""Which errors and responses of requests and urllib3 are transient."""

import pickle
import ssl

import pytest
import requests
from requests.exceptions import (
    ContentDecodingError,
    ProxyError as ProxyErrorOfRequests,
    TooManyRedirects,
)
from urllib3 import exceptions as of_urllib3
from urllib3.exceptions import (
    ClosedPoolError,
    DecodeError,
    EmptyPoolError,
    IncompleteRead,
    InvalidHeader,
    MaxRetryError,
    NameResolutionError,
    NewConnectionError,
    ProxyError,
    ReadTimeoutError,
    ResponseError,
    SSLError,
)

from retrykit.integrations import requests as for_requests, urllib3 as for_urllib3


def reason(error):
    return MaxRetryError(None, "/", error)


REFUSED = ssl.SSLCertVerificationError(1, "self-signed")
OF_URLLIB3 = {
    "a connection refused": (reason(NewConnectionError(None, "refused")), True),
    "a name unknown": (NameResolutionError("host", None, OSError()), True),
    "a timeout": (reason(ReadTimeoutError(None, "/", "late")), True),
    "no free connection": (EmptyPoolError(None, "full"), True),
    "a cut body": (IncompleteRead(1, 2), True),
    "a handshake cut": (reason(SSLError(ssl.SSLEOFError())), True),
    "a proxy that is away": (reason(ProxyError("no", ConnectionResetError())), True),
    "a proxy that says no": (reason(ProxyError("no", OSError("407"))), False),
    "a certificate": (reason(SSLError(REFUSED)), False),
    "a certificate of a proxy": (reason(ProxyError("no", SSLError(REFUSED))), False),
    "a fingerprint": (SSLError("Fingerprints did not match"), False),
    "TLS without a word": (SSLError(), False),
    "too many responses": (reason(ResponseError("too many redirects")), False),
    "no reason": (reason(None), False),
    "a closed pool": (ClosedPoolError(None, "closed"), False),
    "a wrong header": (InvalidHeader("soon"), False),
    "a body of another code": (DecodeError("gzip"), False),
}


def response_with(status):
    response = requests.Response()
    response.status_code = status
    return response


TUNNEL = ProxyError("no", OSError("Tunnel connection failed: 407"))
UNREACHABLE_PROXY = ProxyError("no", NewConnectionError(None, "refused"))
OF_REQUESTS = {
    "a plain connection error": (requests.ConnectionError("reset"), True),
    "one without a word": (requests.ConnectionError(), True),
    "a connect timeout": (requests.ConnectTimeout(), True),
    "a read timeout in a body": (
        requests.ConnectionError(of_urllib3.ReadTimeoutError(None, "/", "")),
        True,
    ),
    "a cut body that is read raw": (of_urllib3.ProtocolError("cut"), True),
    "a certificate": (requests.exceptions.SSLError(reason(SSLError(REFUSED))), False),
    "a handshake cut": (
        requests.exceptions.SSLError(reason(SSLError(ssl.SSLEOFError()))),
        True,
    ),
    "a proxy that says no": (ProxyErrorOfRequests(reason(TUNNEL)), False),
    "a proxy that is away": (ProxyErrorOfRequests(reason(UNREACHABLE_PROXY)), True),
    "a closed pool": (
        requests.ConnectionError(of_urllib3.ClosedPoolError(None, "closed")),
        False,
    ),
    "a status that passes": (requests.HTTPError(response=response_with(503)), True),
    "a status that stays": (requests.HTTPError(response=response_with(404)), False),
    "a status of nothing": (requests.HTTPError(), False),
    "a body of another code": (ContentDecodingError(), False),
    "too many redirects": (TooManyRedirects(), False),
    "retries of urllib3": (requests.exceptions.RetryError(), False),
    "a wrong address": (requests.exceptions.InvalidURL(), False),
    "a wrong header": (requests.exceptions.InvalidHeader(), False),
    "no JSON": (requests.exceptions.JSONDecodeError("no", "", 0), False),
    "a file that is missing": (FileNotFoundError(), False),
}


@pytest.mark.parametrize(("outcome", "passes"), OF_URLLIB3.values(), ids=OF_URLLIB3)
def test_transient_errors_of_urllib3(outcome, passes):
    assert for_urllib3.transient(outcome) is passes
    assert for_requests.transient(outcome) is passes


@pytest.mark.parametrize(("outcome", "passes"), OF_REQUESTS.values(), ids=OF_REQUESTS)
def test_transient_errors_of_requests(outcome, passes):
    assert for_requests.transient(outcome) is passes


@pytest.mark.parametrize("module", [for_requests, for_urllib3])
def test_the_condition_can_be_pickled(module):
    assert pickle.loads(pickle.dumps(module.transient)) is module.transient  # noqa: S301  our own
    assert repr(module.transient) == "transient"
