"""Target: texts about errors, which must not contain secrets of URLs."""

import json
import logging

from retrykit import Policy, RetryError, state_of
from retrykit.integrations.logging import observer
from retrykit.testing import virtual_time
from tests.fuzz.target import Target
from tests.fuzz.values import maybe

__all__ = ["TARGETS"]

_SECRET = "S3CRET"  # noqa: S105  searched for in texts
_LETTERS = "abcXYZ019-._~%$+!*"
_POLICY = Policy(schedule=[0, 0], observers=[observer()])


class StatusError(Exception):
    """An error with a request and a response, like those of clients."""

    def __init__(self, text, url):
        super().__init__(text)
        self.request = Message(method="GET", url=url)
        self.response = Message(status_code=503, url=url, request=self.request)


class Message:
    """A request or a response."""

    def __init__(self, **parts):
        vars(self).update(parts)


class _Recorder(logging.Handler):
    """A log handler that records formatted records, with tracebacks."""

    def __init__(self):
        super().__init__()
        self.texts = []

    def emit(self, record):
        """Record a formatted record."""
        self.texts.append(logging.Formatter().format(record))


def _word(random):
    return "".join(random.choices(_LETTERS, k=random.randint(0, 6)))


def _url(random):
    """Return a URL with a secret in its user information, its path or its query."""
    user = f"{_word(random)}:{_SECRET}{_word(random)}@" if maybe(random, 0.6) else ""
    query = f"?{_word(random)}={_SECRET}{_word(random)}"
    if maybe(random, 0.2):
        query = f"?{_word(random)}@{query[1:]}"
    if maybe(random, 0.3):
        query += f"&b={_word(random)}#part"
    host = random.choice(["api.example", "127.0.0.1:8080", "[::1]:80", "host"])
    scheme = random.choice(["https", "http", "redis", "amqp", "postgresql", "HTTP"])
    rest = query if not user or maybe(random, 0.5) else ""
    path = random.choice(["", "/", "/p", "/a/b", "/a:b"])
    if maybe(random, 0.4):
        path += f"/{_word(random)}{_SECRET}{_word(random)}/p"
    return f"{scheme}://{user}{host}{path}{rest}"


def _error(random):
    """Return a message with a URL, and the kind of its error."""
    url = _url(random)
    around = ["cannot reach {}", "'{}'", "<{}>", "({})", "{}", "for url: {}, see {}"]
    message = random.choice(around).format(url, url)
    if maybe(random, 0.1):
        path = f"/p/{_SECRET}?token={_SECRET}{_word(random)}"
        message = f"Max retries exceeded with url: {path}"
    kind = random.choice(["status", "plain", "cause", "group", "result"])
    return kind, message, url, random.choice(["last", "retry_error", "group"])


def _call(case):
    """Make calls that fail, and return all texts about them."""
    kind, message, url, raises = case
    handler = _Recorder()
    logger = logging.getLogger("retrykit")
    logger.addHandler(handler)
    inner = _POLICY.replace(on_result=lambda _: True, max_attempts=2, raises=raises)
    outer = _POLICY.replace(raises=raises)
    try:
        with virtual_time():
            outer.call(lambda: inner.call(lambda: _fail(kind, message, url)))
    except Exception as error:  # noqa: BLE001  the policy decides which
        return kind, [*handler.texts, *_written(kind, error)]
    finally:
        logger.removeHandler(handler)


def _fail(kind, message, url):
    if kind == "result":
        return {"url": message}
    if kind == "status":
        raise StatusError(message, url)
    if kind == "cause":
        raise LookupError from OSError(message)
    if kind == "group":
        raise ExceptionGroup(message, [OSError(message)])
    raise OSError(message)


def _written(kind, error):
    """Return the texts of retrykit about an error, without the error's own."""
    state = state_of(error)
    yield from getattr(error, "__notes__", ())
    if isinstance(error, RetryError):
        yield str(error)
    if kind != "result":  # the state stores the repr of a result
        yield from (failure.describe() for failure in state.failures)
        yield json.dumps(state.to_dict())
    yield state.describe()


def _check(written, _random):
    _, texts = written
    assert not [text for text in texts if _SECRET in text]


TARGETS = (Target("redaction", 20, _error, _call, _check),)
