"""Redaction of secrets in messages, logs and histories."""

import json
import logging
import time

import pytest
from hypothesis import given, strategies as st

from retrykit import ConfigError, Policy, RetryState, observe, state_of
from retrykit._core.records import result_to_data
from retrykit._core.retry_state import Failure
from retrykit._internal.error_texts import error_text, traceback_text
from retrykit._internal.redaction import redact_urls
from retrykit.errors import RetryError
from retrykit.integrations.logging import observer

SECRET = "S3CRET"  # noqa: S105  what is looked for
URL = f"http://bob:{SECRET}@host:80/p?token={SECRET}"


@pytest.mark.parametrize(
    ("text", "redacted"),
    {
        "": "",
        "refused": "refused",
        "Really? Yes, bob@host": "Really? Yes, bob@host",
        "https://host/p": "https://host/p",
        "https://host/p?a=b": "https://host/p?...",
        "https://host?a=b#c": "https://host?...",
        "https://host/p#c": "https://host/p#c",
        "https://bob@host/@p": "https://host/@p",
        "https://bob:a@b:c@host/p": "https://host/p",
        "https://bob:@[::1]:80/p?a": "https://[::1]:80/p?...",
        "is it 'https://host/p'?": "is it 'https://host/p'?",
        "(https://host/p?a=b).": "(https://host/p?...).",
        "https://a/?b=https://bob:c@d/": "https://a/?...",
        "what?https://bob:c@d/?e": "what?https://d/?...",
        '<a href="https://h/p?a=b">text</a>': '<a href="https://h/p?...">text</a>',
        "GET /p?a=b failed\nPOST /q?c=d too": "GET /p?... failed\nPOST /q?... too",
        "'example.com?a=b':": "'example.com?...':",
        "('bob:c@host/p')": "('host/p')",
        "url=bob:c@d:e@host/p": "url=host/p",
        "git@host:bob/p": "git@host:bob/p",
        "amqp://bob:a#b@host/p": "amqp://host/p",
        "postgres://bob:a?b@host/db": "postgres://host/db",
        "postgres://bob:a/b@host/db": "postgres://host/db",
        "http://host:4873/@scope/p": "http://host:4873/@scope/p",
        "http://[::1]/@scope/p": "http://[::1]/@scope/p",
        "https://host?to=bob@d": "https://host?...",
        "https://bob@host:80?a@b": "https://host:80?...",
        "https://bob@[::1]:80?@b": "https://[::1]:80?...",
        "https://host/:a:?@b": "https://host/*:?...",
        "https://host?:@b": "https://host?...",
        "https://host//a:b?@c": "https://host//*?...",
        "https://host/bot1:abc/getMe": "https://host/*/getMe",
        "url 'https://host/hooks/T0/B0/abc'": "url 'https://host/hooks/*/*/abc'",
        "https://host/a1b2: refused": "https://host/*: refused",
        "(https://host/a1b2).": "(https://host/*).",
        "https://host/orders/42/items": "https://host/orders/42/items",
        "https://host/v1/v10/v100/a1": "https://host/v1/v10/*/*",
        "https://host/12345678901234567/abcdefghijklmnop": (
            "https://host/*/abcdefghijklmnop"
        ),
        "https://host/#/reset/a1": "https://host/#/reset/*",
        "redis://bob:a1@host:6379/0": "redis://host:6379/0",
        r"https:\/\/host\/a1\/p": r"https:\/\/host\/*\/p",
        "with url: /a1/p?b=c (Caused": "with url: /*/p?... (Caused",
        "No scheme: 'api.example.com/a1'": "No scheme: 'api.example.com/*'",
        "localhost/a1 127.0.0.1:80/a1 [::1]:80/a1": (
            "localhost/* 127.0.0.1:80/* [::1]:80/*"
        ),
        '"GET /a1/p HTTP/1.1" 401': '"GET /*/p HTTP/1.1" 401',
        '{"url": "/a1/p", "b": "/a1"}': '{"url": "/*/p", "b": "/a1"}',
        'File "/usr/lib/python3.11/a1.py", line 7': (
            'File "/usr/lib/python3.11/a1.py", line 7'
        ),
        "no such file: '/data/run42/a1.csv'": "no such file: '/data/run42/a1.csv'",
        "file:///data/run42/a1.csv": "file:///data/run42/a1.csv",
        "text/html; agent python-requests/2.31": (
            "text/html; agent python-requests/2.31"
        ),
        "[bob:a@host]": "[host]",
        r"'https:\/\/bob:c@host\/p?a=b'": r"'https:\/\/host\/p?...'",
        "'/p?a=b c&d=e' (found ' ')": "'/p?... c&...' (found ' ')",
        "https://host/p#a=b&c=d": "https://host/p#...",
        "Q&A #1": "Q&A #1",
        'https://host/p?a="b" and c': 'https://host/p?..." and c',
        "https://host/p?a=<b>": "https://host/p?...>",
        '<a href="bob:c@host/p?a=b">text</a>': '<a href="host/p?...">text</a>',
    }.items(),
)
def test_user_info_queries_and_tokens_are_left_out(text, redacted):
    assert redact_urls(text) == redacted
    assert redact_urls(redacted) == redacted


@pytest.mark.parametrize(
    "part",
    [
        *("/", "//", "//a", "?", "@", "//@?", "a", "a@", "/?", "//a:", ":", "a:b,"),
        *("://", "a.", "a.b/", "url:", "GET ", "a1/", "1:1/", "[::1]:"),
        *("&", "=", "//a:1", "/a:b", "(a:", "a:b@", "//a:b@", "&a=", "#", '="'),
    ],
)
@pytest.mark.parametrize(
    "end",
    ["", *(pytest.param(end, marks=pytest.mark.thorough) for end in ("?@", "/@="))],
)
def test_a_long_text_is_redacted_quickly(part, end):
    began = time.process_time()
    redact_urls(part * 50_000 + end)
    assert time.process_time() - began < 1


UNRESERVED = "abcXYZ019-._~"
IN_USER_INFO = st.text(UNRESERVED + "!$&'()*+,;=:%", max_size=5)
IN_QUERIES = st.text(UNRESERVED + "!$&'()*+,;=:@/?%", max_size=5)


@st.composite
def urls(draw):
    """URLs by RFC 3986 with secrets in user info and query."""
    user, around = draw(IN_USER_INFO), st.tuples(IN_USER_INFO, IN_USER_INFO)
    before, after = draw(around)
    path = draw(st.lists(st.text(UNRESERVED + "!$&'()*+,;=:@%", max_size=5)))
    queries = draw(st.tuples(IN_QUERIES, IN_QUERIES))
    return (
        f"{draw(st.sampled_from(['http', 'https', 'redis', 'postgresql+psycopg']))}://"
        f"{user}{before}{SECRET}{after}@{draw(st.sampled_from(['host', '[::1]:80']))}"
        f"{''.join(f'/{each}' for each in path)}?{queries[0]}{SECRET}{queries[1]}"
    )


TEXTS = st.sampled_from(
    [
        "{}",
        "Server error '503 busy' for url '{}'\nFor more information",
        "503, message='busy', url='{}'",
        "<Response of ({})>.",
        '{{"url": "{}"}}',
        "{} and {}",
    ]
)


@given(url=urls(), text=TEXTS, kind=st.sampled_from([OSError, KeyError, SyntaxError]))
def test_no_message_log_or_history_contains_secrets_of_a_url(url, text, kind):
    """Messages of errors, log records and stored histories, of errors and results."""
    message = text.format(url, url)
    records = []
    handler = logging.Handler()
    handler.emit = lambda record: records.append(logging.Formatter().format(record))
    log = logging.Logger("any")  # noqa: LOG001  of this example alone
    log.addHandler(handler)

    def fail():
        cause = kind(message)
        cause.add_note(message)
        raise OSError(message) from cause

    policy = Policy(schedule=[0], on=OSError, raises="retry_error")
    with observe(observer(log)):
        error = policy.run(fail).error
        rejected = policy.replace(on_result=lambda _: True).run(lambda: message).error
    for each in (error, rejected):
        assert len(records) >= 2
        records += [str(each), json.dumps(each.state.to_dict())]
    with pytest.raises(ConfigError) as caught:
        Policy(max_attempts=message)
    assert SECRET not in "".join([*records, caught.value.message])


class RequestError(Exception):
    """An error about a request, with any attributes."""

    def __init__(self, **attributes):
        super().__init__("the message")
        vars(self).update(attributes)


class Namespace:
    """Anything with attributes."""

    def __init__(self, **attributes):
        vars(self).update(attributes)


class Broken:
    def __getattr__(self, name):
        raise ZeroDivisionError(name)

    def __str__(self):
        raise ZeroDivisionError


GET = Namespace(method="GET", url=URL)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (RequestError(request=GET), "GET host:80/p"),
        (RequestError(request=GET, status=503), "GET host:80/p, status 503"),
        (
            RequestError(request=GET, response=Namespace(status_code=503)),
            "GET host:80/p, status 503",
        ),
        (RequestError(request_info=GET, status=503), "GET host:80/p, status 503"),
        (
            RequestError(response=Namespace(request=GET, status=503)),
            "GET host:80/p, status 503",
        ),
        (RequestError(response=Namespace(status=503)), "status 503"),
        (RequestError(request=Namespace(method="GET", url="http://[")), "GET"),
        (RequestError(request=Namespace(method="GET", url=Broken())), "GET"),
        (RequestError(pool=Namespace(host="host"), url="/p?a=b"), "host/p"),
        (
            RequestError(pool=Namespace(host="host", port=80), url="/a1/p"),
            "host:80/*/p",
        ),
        (
            RequestError(pool=Namespace(host="proxy", port=80), url="http://h:81/p"),
            "h:81/p",
        ),
        (RequestError(pool=None, url="/p?a=b"), "the message"),
        (RequestError(pool=Namespace(host="::1", port=80), url="/p"), "[::1]:80/p"),
        (
            RequestError(request=Namespace(method="GET", url="http://[::1]/")),
            "GET [::1]/",
        ),
        (RequestError(pool=Namespace(host="host")), "the message"),
        (RequestError(request=None, response=None, status=503), "the message"),
        (RequestError(status=503, headers={"a": "b"}, body="{}"), "status 503"),
        (RequestError(status=503, headers={"a": "b"}, body=None), "status 503"),
        (RequestError(status=503, headers=None, body=None), "the message"),
        (RequestError(status=503, headers={"a": "b"}), "the message"),
        (RequestError(request=Broken(), response=Broken()), "the message"),
        (
            RequestError(request={"id": 7}, response={"status": 503}),
            "the message",
        ),
        (OSError(URL), "http://host:80/p?..."),
    ],
)
def test_an_error_about_a_request_is_shown_without_its_message(error, text):
    assert error_text(error) == text
    assert error_text(error, redact=False) == str(error)


@pytest.mark.parametrize("redact", [True, False])
def test_string_results_are_redacted(redact):
    redacted = "http://host:80/p?..." if redact else URL
    assert result_to_data(URL, redact=redact) == redacted
    record = result_to_data((URL,), redact=redact)["record"]
    assert record == {"type": "tuple", "text": f"('{redacted}',)"}


class Response:
    def __init__(self, status):
        self.status_code = status


def test_a_rejected_result_is_shown_by_its_type_alone(caplog):
    """Also by an outer call, which logs the RetryError of the inner one."""
    inner = Policy(schedule=[0], on_result=lambda _: True)
    outer = Policy(nested="retry", schedule=[0], observers=[observer()])
    outer.run(inner.call, lambda: {"token": SECRET})
    assert SECRET not in caplog.text
    assert caplog.text.count("; last failure: a rejected result of type dict") == 2


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        ({"token": SECRET}, "dict"),
        (SECRET, "str"),
        (None, "NoneType"),
        (Response(503), f"{__name__}.Response with status 503"),
    ],
)
def test_a_retry_error_shows_the_type_of_the_result_and_its_state_the_result(
    result, shown
):
    state = RetryState("fetch", 7, 0.0)
    state._record.add_failure(Failure(1, None, result, 0.0, 0.0, None))
    assert str(RetryError(state)).endswith(
        f"; last failure: a rejected result of type {shown}"
    )
    again = RetryState.from_dict(state.to_dict())
    assert str(RetryError(again)) == str(RetryError(state))
    if result is not None and not isinstance(result, Response):
        assert SECRET in json.dumps(again.to_dict())


FAULTS = {
    "a predicate": {"on": lambda error: 1 // 0},
    "a hint": {"hint": lambda error: 1 // 0},
    "an answer": {"hint": lambda error: f"{error}"},
    "an observer": {"observers": [lambda event: 1 // 0]},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_log_of_a_failing_part_of_the_policy_has_no_secret(fault, caplog):
    """A traceback shows the error that was being handled, too."""

    def fail():
        raise OSError(URL)

    with pytest.raises(OSError, match=SECRET) as caught:
        Policy(schedule=[0], **FAULTS[fault]).call(fail)
    assert caplog.records != []
    formatter = logging.Formatter()
    logged = [formatter.format(record) for record in caplog.records]
    notes = getattr(caught.value, "__notes__", [])
    assert SECRET not in "".join([*logged, *notes])
    assert state_of(caught.value) is not None


def test_the_repr_of_a_failure_has_no_secrets_of_a_url():
    failure = Failure(2, OSError(f"503 for {URL}"), None, 0.5, 0.25, None)
    assert repr((failure,)) == (
        "(Failure(attempt=2, error=OSError('503 for http://host:80/p?...'), "
        "result=None, started=0.5, duration=0.25, delay=None, rule=None, hint=None),)"
    )


def test_the_repr_of_a_failure_shows_an_error_about_a_request_like_logs():
    error = RequestError(request=GET, status=503, headers={"Authorization": SECRET})
    printed = repr(Failure(2, error, None, 0.5, 0.25, None))
    shown = "error=<tests._internal.test_redaction.RequestError: GET host:80/p, "
    shown += "status 503>"
    assert shown in printed
    assert SECRET not in printed


class ResponseError(RequestError):
    """An error that is a response, and shows all of it."""

    def __str__(self):
        return f"({self.status})\n{self.headers}\n{self.body}"


def test_the_traceback_of_an_error_that_is_a_response_has_its_status_alone():
    error = ValueError("no such page")
    error.__cause__ = ResponseError(status=404, headers={"Cookie": SECRET}, body=SECRET)
    text = traceback_text(error)
    assert text.startswith(f"{__name__}.ResponseError: status 404\n\nThe above")
    assert SECRET not in text
    assert SECRET in traceback_text(error, redact=False)


@pytest.mark.parametrize("inner", [False, True])
@pytest.mark.parametrize("outer", [False, True])
def test_a_nested_state_is_redacted_if_either_policy_says_so(inner, outer):
    def fail():
        raise OSError(URL)

    policy = Policy(schedule=[0], max_attempts=2)
    within = policy.replace(redact=inner)
    state = policy.replace(redact=outer).run(within.call, fail).state
    assert (SECRET in json.dumps(state.to_dict()["nested_state"])) == (
        not inner and not outer
    )
