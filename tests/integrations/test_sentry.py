"""What the observer for Sentry sends, through the real SDK."""

import asyncio
import contextvars
import json
import logging
import threading

import httpx
import pytest
import sentry_sdk
from sentry_sdk.integrations.logging import ignore_logger
from sentry_sdk.transport import Transport
from starlette.applications import Starlette
from starlette.routing import Route

from retrykit import GiveUp, Policy, RetryError, RetryState, observe, resume, state_of
from retrykit._core.failures import ErrorRecord, Failure
from retrykit.integrations import logging as for_logging
from retrykit.integrations.sentry import observer
from tests._support import sentry_events
from tests._support.scripted_server import answer, serve
from tests._support.sentry_events import Memory

pytestmark = pytest.mark.usefixtures("clock")

POLICY = Policy(schedule=[1, 2], on=OSError, name="fetch")

initialize, sent = sentry_events.initialize, sentry_events.sent


class Broken(Transport):
    """Fails to send anything."""

    def __init__(self):
        super().__init__()
        self.used = 0

    def capture_envelope(self, envelope):
        self.used += 1
        raise ZeroDivisionError


def breadcrumbs():
    """Return those of the next event."""
    crumbs = sentry_sdk.Scope.get_isolation_scope()._breadcrumbs  # noqa: SLF001  not sent yet
    return [crumb for crumb in crumbs if crumb["category"] != "asyncio"]


def failing(*errors):
    """Return a function that raises these errors, and the last one from then on."""
    left = [*errors]

    def fetch():
        raise left.pop(0) if len(left) > 1 else left[0]

    return fetch


def error_of(call, *args):
    """Return the error that a call raises."""
    with pytest.raises(Exception) as caught:
        call(*args)
    return caught.value


def texts(event):
    return [each["value"] for each in event["exception"]["values"]]


def test_a_call_that_gives_up_is_one_event_with_a_breadcrumb_per_attempt(backend, sent):
    outcome = backend.run(POLICY, failing(OSError("one"), OSError("two"), OSError()))
    [event] = sent
    [error] = event["exception"]["values"]
    assert (error["type"], error["value"]) == ("OSError", "")
    assert error["mechanism"] == {"type": "retrykit", "handled": True}
    assert error["stacktrace"]["frames"][-1]["function"] == "fetch"
    assert event["level"] == "error"
    assert "fingerprint" not in event
    assert event["tags"] == {"retry.name": "fetch", "retry.reason": "schedule_ended"}
    assert event["contexts"]["retry"] == {
        "name": "fetch",
        "outcome": outcome.state.describe(),
        "attempts": 3,
        "elapsed": 3.0,
        "total_delay": 3.0,
        "reason": "schedule_ended",
    }
    found = [
        (crumb["category"], crumb["level"], crumb["message"], crumb["data"])
        for crumb in event["breadcrumbs"]["values"]
    ]
    assert found == [
        ("retry", "warning", f"fetch: attempt {number} failed; {text}", {
            "name": "fetch", "attempt": number, "delay": delay, "error": "OSError",
        })
        for number, delay, text in [
            (1, 1.0, "OSError: one"), (2, 2.0, "OSError: two"), (3, None, "OSError"),
        ]
    ]  # fmt: skip


def test_a_call_that_succeeds_in_the_end_is_no_event(backend, flaky, sent):
    backend(POLICY)(flaky(OSError("busy")))()
    assert sent == []
    assert [crumb["data"]["attempt"] for crumb in breadcrumbs()] == [1]


def test_an_error_that_is_not_retryable_is_left_to_the_application(backend, sent):
    error_of(backend.run, POLICY, failing(ValueError("wrong")))
    assert sent == []


def test_an_error_that_is_not_retryable_after_a_retry_is_an_event(backend, sent):
    error_of(backend.run, POLICY, failing(OSError("busy"), ValueError("wrong")))
    assert [event["tags"]["retry.reason"] for event in sent] == ["not_retryable"]
    assert texts(sent[0])[-1] == "wrong"


def test_a_cancelled_call_is_no_event(sent):
    async def main():
        attempts, hanging = [], asyncio.Event()

        async def fetch():
            attempts.append(1)
            if len(attempts) == 1:
                raise OSError
            hanging.set()
            await asyncio.Event().wait()

        task = asyncio.ensure_future(POLICY.acall(fetch))
        await hanging.wait()
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(main())
    assert sent == []


def test_an_error_of_a_predicate_is_left_to_the_application(sent):
    results = iter(["queued", None])
    policy = Policy(schedule=[1], on_result=lambda result: result.startswith("q"))
    with pytest.raises(AttributeError):
        policy.call(lambda: next(results))
    assert sent == []


def test_a_fallback_is_an_event_too(sent):
    assert POLICY.replace(fallback=9).call(failing(OSError("busy"))) == 9
    assert texts(sent[0]) == ["busy"]


def test_the_cause_of_a_signal_is_the_error_of_the_event(sent):
    error_of(POLICY.call, failing(OSError("busy"), GiveUp(PermissionError("revoked"))))
    assert [event["exception"]["values"][-1]["type"] for event in sent] == [
        "PermissionError"
    ]


# One event, though it is captured again.


@pytest.mark.parametrize("raises", ["last", "retry_error", "group"])
@pytest.mark.parametrize("thread", [False, True], ids=["here", "in a thread"])
def test_an_error_that_is_captured_again_is_no_second_event(sent, raises, thread):
    errors, policy = [], POLICY.replace(raises=raises)

    def call():
        fetch = failing(OSError("busy"), OSError("still busy"))
        errors.append(error_of(policy.call, fetch))

    if thread:
        # As `asyncio.to_thread` and the thread pools of frameworks do.
        other = threading.Thread(target=contextvars.copy_context().run, args=[call])
        other.start()
        other.join()
    else:
        call()
    sentry_sdk.capture_exception(errors[0])
    assert [texts(event)[-1] for event in sent] == ["still busy"]


def test_a_rejected_result_is_one_event_without_it(sent):
    policy = Policy(schedule=[1], on_result=lambda _: True, name="poll")
    error = error_of(policy.call, lambda: "secret")
    assert type(error) is RetryError
    sentry_sdk.capture_exception(error)
    [event] = sent
    [text] = texts(event)
    assert text == (
        "poll gave up after 2 attempts in 1 s: the schedule has ended; "
        "last failure: a rejected result of type str"
    )
    crumb = event["breadcrumbs"]["values"][0]
    assert crumb["message"] == "poll: attempt 1 failed; a rejected result"
    assert crumb["data"]["error"] is None
    assert "secret" not in json.dumps([event["exception"], event["breadcrumbs"]])


@pytest.mark.parametrize("outer", [
    Policy(schedule=[1], on=OSError),
    Policy(schedule=[1], on=ValueError),
    Policy(schedule=[1], on=OSError, raises="retry_error"),
    Policy(schedule=[1], on=OSError, nested="raise"),
], ids=["the same errors", "other errors", "another form", "nested"])  # fmt: skip
def test_nested_calls_are_one_event_which_is_that_of_the_innermost(sent, outer):
    def middle():
        outer.replace(name="middle").call(POLICY.call, failing(OSError("busy")))

    error = error_of(outer.replace(name="outer").call, middle)
    sentry_sdk.capture_exception(error)
    assert [event["tags"]["retry.name"] for event in sent] == ["fetch"]


def test_a_wrapped_error_of_a_nested_call_is_no_second_event(sent):
    def inner():
        try:
            POLICY.call(failing(OSError("busy")))
        except OSError as error:
            raise RuntimeError from error

    error_of(Policy(schedule=[1], on=RuntimeError, name="outer").call, inner)
    assert [event["tags"]["retry.name"] for event in sent] == ["fetch"]


def test_an_error_object_that_a_later_call_raises_is_a_new_event(sent):
    shared = OSError("closed")
    for name in ("first", "second"):
        sentry_sdk.capture_exception(ZeroDivisionError())
        error_of(POLICY.replace(name=name).call, failing(shared))
    names = [event.get("tags", {}).get("retry.name") for event in sent]
    assert names == [None, "first", None, "second"]


def test_a_call_that_is_resumed_and_gives_up_again_is_a_new_event(sent):
    error = error_of(POLICY.call, failing(OSError("busy")))
    state = RetryState.from_dict(state_of(error).to_dict())
    error_of(resume(failing(OSError("again")), state, POLICY))
    assert [texts(event)[-1] for event in sent] == ["busy", "again"]


def test_a_resumed_call_that_is_stopped_while_it_waits_is_an_event(sent):
    state = RetryState("fetch", 7, 0.0, next_delay=1.0, failures=(
        Failure(1, ErrorRecord("OSError", "busy", ""), None, 0.0, 0.0, 1.0),
    ))  # fmt: skip
    stop = threading.Event()
    stop.set()
    error_of(resume(failing(OSError()), state, POLICY, stop_event=stop))
    [event] = sent
    assert event["tags"]["retry.reason"] == "stopped"
    assert texts(event) == [
        f"fetch {event['contexts']['retry']['outcome']}; last failure: OSError: busy"
    ]


def test_an_event_that_the_application_drops_does_not_count_as_sent(initialize):
    answers = iter([None, None, {"event_id": "0" * 32}])
    memory = initialize(Memory(), before_send=lambda event, hint: next(answers))
    with observe(observer()):
        error = error_of(POLICY.call, failing(OSError("busy")))
    # Sentry's own deduplication compares with the last error alone.
    sentry_sdk.capture_exception(ZeroDivisionError())
    sentry_sdk.capture_exception(error)
    assert len(memory.events) == 1


@pytest.mark.parametrize("kind", ["async", "sync"])
def test_a_web_framework_does_not_report_the_error_again(sent, kind):
    def endpoint(request):
        POLICY.call(failing(OSError("busy")))

    async def async_endpoint(request):
        await POLICY.acall(asyncio.to_thread, failing(OSError("busy")))

    chosen = endpoint if kind == "sync" else async_endpoint
    app = Starlette(routes=[Route("/", chosen), Route("/bug", lambda request: 1 / 0)])

    def get(path):
        return asyncio.run(_status(app, path))

    assert get("/") == 500
    assert [event["exception"]["values"][-1]["mechanism"]["type"] for event in sent] \
        == ["retrykit"]  # fmt: skip
    assert get("/bug") == 500
    assert [event["exception"]["values"][-1]["type"] for event in sent] == [
        "OSError", "ZeroDivisionError",
    ]  # fmt: skip


async def _status(app, path):
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://shop") as client:
        return (await client.get(path)).status_code


# Log records.


def test_the_log_records_of_retries_are_no_second_breadcrumbs(sent, caplog):
    caplog.set_level(logging.WARNING, "retrykit.retries")
    error_of(POLICY.call, failing(OSError("busy")))
    assert len(caplog.messages) == 2
    crumbs = sent[0]["breadcrumbs"]["values"]
    assert [crumb["category"] for crumb in crumbs] == ["retry"] * 3


def test_a_log_observer_with_an_ignored_logger_doubles_nothing(sent, caplog):
    log = logging.getLogger("shop.retries")
    ignore_logger("shop.retries")
    with observe(for_logging.observer(log)):
        error_of(POLICY.call, failing(OSError("busy")))
    assert [record.levelname for record in caplog.records][-1] == "ERROR"
    assert len(sent) == 1
    assert len(sent[0]["breadcrumbs"]["values"]) == 3


def test_an_error_that_the_application_logs_is_no_second_event(sent):
    try:
        POLICY.call(failing(OSError("busy")))
    except OSError:
        logging.getLogger("shop").exception("the shop is closed")
    assert len(sent) == 1


# Secrets.


URL = "https://bob:hunter2@api.example/bot7:hunter2/p?token=hunter2"


def fail_with(password):
    local = f"{password}!"
    try:
        raise ValueError(URL + local[:0])
    except ValueError as error:
        raise OSError(f"cannot reach {URL}") from error


def test_arguments_and_secrets_of_urls_are_not_sent(sent):
    error_of(POLICY.call, fail_with, "hunter2")
    assert texts(sent[0]) == [
        "https://api.example/*/p?...",
        "cannot reach https://api.example/*/p?...",
    ]
    for each in sent[0]["exception"]["values"]:
        for frame in each["stacktrace"]["frames"]:
            assert "vars" not in frame
    event = json.dumps({key: sent[0][key] for key in ("breadcrumbs", "contexts")})
    assert "hunter2" not in event


def test_an_error_of_a_request_is_its_summary(sent):
    error = OSError("503 for /p")
    error.request = type("Request", (), {"method": "GET", "url": URL})
    error_of(POLICY.call, failing(error))
    assert texts(sent[0]) == ["GET api.example/*/p"]


def test_a_chained_error_of_a_client_has_no_token(sent):
    def fetch():
        request = httpx.Request("GET", URL)
        try:
            httpx.Response(401, request=request).raise_for_status()
        except httpx.HTTPStatusError as error:
            message = "not logged in"
            raise OSError(message) from error

    error_of(POLICY.call, fetch)
    assert "hunter2" not in json.dumps([texts(sent[0]), sent[0]["breadcrumbs"]])
    assert "https://api.example/*/p?..." in texts(sent[0])[0]


def test_a_chained_error_that_is_a_response_has_its_status_alone(sent):
    class AnswerError(Exception):
        status, body = 401, "hunter2"

        def __init__(self):
            super().__init__("hunter2")
            vars(self).update(status=401, body="hunter2", headers={})

    def fetch():
        message = "not logged in"
        raise OSError(message) from AnswerError()

    error_of(POLICY.call, fetch)
    assert texts(sent[0]) == ["status 401", "not logged in"]


def test_lines_of_code_are_sent_without_tokens(sent):
    def fetch():
        url = "https://api.example/bot7:hunter2/p"
        raise OSError(url)

    error_of(POLICY.call, fetch)
    [value] = sent[0]["exception"]["values"]
    lines = json.dumps(value["stacktrace"]["frames"][-1])
    assert "https://api.example/*/p" in lines
    assert "bot7" not in lines


def test_a_function_of_the_policy_redacts_all_texts(sent):
    policy = POLICY.replace(redact=lambda text: text.replace("api", "*"))
    error_of(policy.call, fail_with, "hunter2")
    assert texts(sent[0])[0] == "https://*.example/*/p?..."
    assert "api.example" not in json.dumps(sent[0])


def test_a_policy_may_switch_redaction_off(sent):
    error_of(POLICY.replace(redact=False).call, failing(OSError(URL)))
    assert texts(sent[0]) == [URL]
    assert URL in sent[0]["breadcrumbs"]["values"][0]["message"]


# Transports.


def dsn_of(server):
    return server.url.replace("http://", "http://key@") + "/7"


def test_nothing_happens_before_sentry_is_initialized(initialize):
    with observe(observer()):
        error_of(POLICY.call, failing(OSError("busy")))
    assert breadcrumbs() == []


def test_an_event_reaches_a_server(initialize):
    with serve(answer(200, body=b"{}")) as server:
        initialize(dsn=dsn_of(server))
        with observe(observer()):
            error_of(POLICY.call, failing(OSError("busy")))
        sentry_sdk.flush(timeout=10)
        [request] = server.seen
    assert request.path == "/api/7/envelope/"


def test_a_transport_that_fails_does_not_touch_the_call(initialize):
    broken = initialize(Broken())
    with observe(observer()):
        with pytest.raises(OSError, match="busy"):
            POLICY.call(failing(OSError("busy")))
    assert broken.used


def test_a_server_that_does_not_answer_does_not_block_the_call(initialize):
    released = threading.Event()

    def answer_late(request):
        released.wait(20)
        return answer(200, body=b"{}")

    with serve(answer_late) as server:
        initialize(dsn=dsn_of(server))
        with observe(observer()):
            for _ in range(4):
                error_of(POLICY.call, failing(OSError("busy")))
        assert len(server.seen) <= 1
        released.set()
        sentry_sdk.flush(timeout=10)
        assert len(server.seen) == 4
