"""The recipes of docs/web_frameworks.md, in FastAPI, Starlette and Django."""

import asyncio
import contextlib
import functools
import http.client
import json
import os
import re
import threading
from types import SimpleNamespace
from wsgiref.simple_server import WSGIRequestHandler, make_server

import django
import fastapi
import httpx
import pytest
from django import conf
from django.core.wsgi import get_wsgi_application
from django.test import AsyncClient, Client, override_settings
from django.urls import path
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from retrykit import Policy, aretry, current_state, retry, state_of
from retrykit.budgets import TokenBucket
from retrykit.testing import virtual_time
from tests._support.documents import ROOT
from tests._support.page_modules import imported_page
from tests._support.ports import free_port
from tests._support.scripted_server import answer, serve

PAGE = "web_frameworks.md"
DOWN = answer(503)


@pytest.fixture
def clock():
    with virtual_time(process_wide=True) as clock:
        yield clock


@pytest.fixture
def page(clock, tmp_path):
    """Return a function that imports modules of the page."""
    with imported_page(PAGE, tmp_path) as load:
        yield load


@pytest.fixture
def start(page):
    """Return a function that starts the service of the page, and its upstream."""
    with contextlib.ExitStack() as stack:
        runner = stack.enter_context(asyncio.Runner())

        def start(*steps):
            upstream = stack.enter_context(serve(*steps))
            os.environ["STOCK_URL"] = upstream.url
            stack.callback(os.environ.pop, "STOCK_URL")
            main = page("main")
            stack.callback(lambda: runner.run(main.client.aclose()))

            def get(path, app=main.app, **headers):
                return runner.run(_get(app, path, headers))

            return SimpleNamespace(
                main=main, get=get, upstream=upstream, together=_together(runner, main)
            )

        yield start


async def _get(app, path, headers):
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://shop") as client:
        return await client.get(path, headers=headers)


def _together(runner, main):
    async def main_together(paths):
        return await asyncio.gather(*(_get(main.app, path, {}) for path in paths))

    return lambda *paths: runner.run(main_together(paths))


def timeout(seconds):
    return {"x-request-timeout": seconds}


@pytest.mark.parametrize(("header", "seconds"), [
    ("2.5", 2.5), ("0", 0), ("1e3", 20), (None, 20), ("", 20), ("soon", 20),
    ("-1", 20), ("nan", 20), ("inf", 20), ("9" * 5000, 20),
])  # fmt: skip
def test_the_limit_of_a_request_is_that_of_its_header_within_bounds(
    page, header, seconds
):
    per_request = page("per_request")
    assert per_request.time_limit(header) == seconds
    with per_request.request_limits(header):
        assert current_state().remaining == seconds


def test_an_error_in_a_request_leaves_it_unchanged(page):
    per_request = page("per_request")
    with pytest.raises(ValueError, match="wrong") as caught:
        with per_request.request_limits():
            raise ValueError("wrong")
    assert not hasattr(caught.value, "__notes__")
    assert per_request.retries_left.get() is None


def test_the_answer_is_about_the_innermost_call_that_has_given_up(page):
    inner = Policy(schedule=[1], on=OSError, name="inner", hint=lambda _: 30.5)
    outer = Policy(schedule=[1], on=OSError, name="outer")
    outcome = outer.run(inner.call, functools.partial(open, "/no/such/file"))
    body, headers = page("per_request").unavailable(outcome.error)
    assert body == {"failed": "inner", "reason": "schedule_ended"}
    assert headers == {"Retry-After": "31"}


# FastAPI.


def test_a_call_that_gives_up_is_answered_as_the_page_shows(start):
    shop = start(answer(503, [("Retry-After", "120")]))
    response = shop.get("/items/book")
    text = (ROOT / "docs" / PAGE).read_text("utf-8")
    shown = re.search(r"```text\nHTTP/1.1 (\d+) .*?\n(.*?): (.*?)\n\n(.*?)\n```", text)
    status, header, value, body = shown.groups()
    assert (response.status_code, response.headers[header]) == (int(status), value)
    assert response.json() == json.loads(body)
    assert len(shop.upstream.seen) == 1


@pytest.mark.parametrize("listens", [True, False])
def test_without_a_hint_there_is_no_retry_after(start, listens):
    shop = start(DOWN)
    if not listens:
        shop.main.client.base_url = f"http://127.0.0.1:{free_port()}"
    response = shop.get("/items/book")
    assert response.status_code == 503
    assert response.json() == {"failed": "main.stock", "reason": "attempts"}
    assert "retry-after" not in response.headers


def test_an_answer_of_the_upstream_is_that_of_the_request(start):
    shop = start(DOWN, answer(body=b'{"left": 3}'))
    assert shop.get("/items/book").json() == {"left": 3}


@pytest.mark.parametrize(
    "step", [answer(404), answer(body=b"no JSON")], ids=["not retryable", "no call"]
)
def test_an_error_that_is_not_retryable_is_left_to_the_framework(start, step):
    shop = start(step)
    assert shop.get("/items/book").status_code == 500
    assert len(shop.upstream.seen) == 1


def test_no_retry_begins_after_the_time_limit_of_the_request(start, clock):
    shop = start(DOWN)
    began = clock.now()
    response = shop.get("/items/book", **timeout("1"))
    assert response.json()["reason"] == "elapsed"
    assert clock.now() - began < 1
    assert len(shop.upstream.seen) < 4


def test_the_calls_of_a_request_share_its_time_limit(start, clock):
    shop, remaining = start(DOWN), []

    @aretry(Policy(schedule=[0.3] * 9, on=OSError))
    async def call():
        remaining.append(round(current_state().remaining, 6))
        raise OSError

    @shop.main.app.get("/twice")
    async def twice():
        for _ in range(2):
            with contextlib.suppress(OSError):
                await call()
        return current_state().remaining

    assert shop.get("/twice", **timeout("1")).json() == pytest.approx(0.1)
    assert remaining == [1, 0.7, 0.4, 0.1, 0.1]


def test_the_calls_of_a_request_share_its_retries(start):
    shop = start(DOWN)

    @shop.main.app.get("/three")
    async def three():
        reasons = []
        for _ in range(3):
            try:
                await shop.main.stock("book")
            except httpx.HTTPStatusError as error:
                reasons.append(state_of(error).stop_reason)
        return reasons

    assert shop.get("/three").json() == ["attempts", "budget", "budget"]
    assert len(shop.upstream.seen) == 3 + 3


def test_requests_at_the_same_time_have_their_own_retries(start):
    shop = start(DOWN)
    answers = shop.together("/items/book", "/items/pen")
    assert [each.json()["reason"] for each in answers] == ["attempts"] * 2
    assert len(shop.upstream.seen) == 4 + 4


def test_an_endpoint_in_a_thread_has_the_same_limits(start):
    shop = start(DOWN)

    @retry(Policy(schedule=[1] * 9, on=OSError,
                  budget=shop.main.RequestBudget(shop.main.bucket)))  # fmt: skip
    def call():
        raise OSError

    @shop.main.app.get("/thread")
    def thread():
        try:
            call()
        except OSError as error:
            return [state_of(error).attempt, current_state().remaining]

    assert shop.get("/thread").json() == [4, pytest.approx(17)]
    assert shop.get("/thread", **timeout("1.5")).json() == [2, pytest.approx(0.5)]


def test_the_health_page_shows_the_budgets(start):
    shop = start(DOWN)
    before = shop.get("/health").json()["retry_budgets"]["host:stock"]
    shop.get("/items/book")
    after = shop.get("/health").json()["retry_budgets"]["host:stock"]
    assert after == before - 15


def test_a_spent_bucket_refuses_retries_to_every_request(start):
    shop = start(DOWN)
    budget = shop.main.RequestBudget(TokenBucket(5))
    assert budget.balance == 5.0
    stock = aretry(Policy(on=OSError, schedule=[1, 1], budget=budget))(_refused)
    shop.main.app.get("/bucket")(stock)
    shop.main.app.exception_handler(OSError)(shop.main.answer_unavailable)
    assert shop.get("/bucket").json()["reason"] == "budget"
    budget.deposit(5)
    assert budget.balance == 5.0


async def _refused():
    raise ConnectionRefusedError


def test_outside_of_a_request_the_bucket_alone_decides(start):
    shop = start(DOWN)
    bucket = TokenBucket(50)
    policy = Policy(
        on=OSError, schedule=[1] * 20, budget=shop.main.RequestBudget(bucket)
    )
    error = asyncio.run(policy.arun(_refused)).error
    assert state_of(error).attempt == 11


def test_start_and_stop_of_the_application_have_no_limits(start, page):
    shop, found = start(DOWN), []

    async def app(scope, receive, send):
        found.append(page("per_request").retries_left.get())

    asyncio.run(shop.main.RequestLimits(app)({"type": "lifespan"}, None, None))
    assert found == [None]


def test_a_background_task_has_the_limits_of_its_request(start):
    shop, found = start(DOWN), []

    @shop.main.app.get("/background")
    def background(tasks: fastapi.BackgroundTasks):
        tasks.add_task(lambda: found.append(current_state().remaining))

    assert shop.get("/background", **timeout("3")).status_code == 200
    assert found == [3]


def test_a_handler_of_every_exception_gets_the_state_of_the_request(start):
    shop, names = start(DOWN), []

    @shop.main.app.exception_handler(Exception)
    def handle(request, error):
        names.append(state_of(error).name)
        return JSONResponse({}, 500)

    @shop.main.app.get("/refused")
    async def refused():
        await Policy(on=OSError, schedule=[1]).acall(_refused)

    assert shop.get("/refused").status_code == 500
    assert names == ["request"]


def test_starlette_takes_the_same_middleware_and_handler(start):
    shop = start(answer(503, [("Retry-After", "120")]))

    async def item(request):
        return JSONResponse(await shop.main.stock("book"))

    app = Starlette(
        routes=[Route("/", item)],
        exception_handlers={httpx.HTTPError: shop.main.answer_unavailable},
    )
    app.add_middleware(shop.main.RequestLimits)
    response = shop.get("/", app)
    assert (response.status_code, response.headers["retry-after"]) == (503, "120")


# Django.


STOCK = Policy(schedule=[1] * 9, on=OSError, name="stock")


class Views:
    """Views that call a retried function, sync and async."""

    def __init__(self, budget):
        self.policy = STOCK.replace(budget=budget)
        self.remaining = []

    def refuse(self):
        self.remaining.append(round(current_state().remaining, 6))
        raise ConnectionRefusedError

    async def arefuse(self):
        self.refuse()

    def item(self, request):
        self.policy.call(self.refuse)

    async def aitem(self, request):
        await self.policy.acall(self.arefuse)

    def bug(self, request):
        raise ZeroDivisionError

    def hint(self, request):
        self.policy.replace(hint=lambda _: 7200).call(self.refuse)


@pytest.fixture
def shop(page):
    """Return the views of a Django service with the middleware of the page."""
    if not conf.settings.configured:
        conf.settings.configure(ALLOWED_HOSTS=["*"])
        django.setup()
    views = Views(page("per_request").RequestBudget(TokenBucket()))
    urls = [path(name, getattr(views, name)) for name in ("item", "aitem", "bug")]
    urls += [path("hint", views.hint), path("health", page("middleware").health)]
    middleware = ["middleware.RequestLimits"]
    with override_settings(ROOT_URLCONF=tuple(urls), MIDDLEWARE=middleware):
        yield views


def test_django_answers_for_a_call_that_gives_up(shop):
    response = Client().get("/item")
    assert response.status_code == 503
    assert response.json() == {"failed": "stock", "reason": "budget"}
    assert shop.remaining == [20, 19, 18, 17]
    assert "Retry-After" not in response.headers


def test_django_limits_the_time_of_the_request(shop):
    response = Client().get("/item", headers=timeout("2.5"))
    assert response.json() == {"failed": "stock", "reason": "elapsed"}
    assert shop.remaining == [2.5, 1.5, 0.5]


def test_the_limits_reach_async_views_of_django(shop):
    response = asyncio.run(AsyncClient().get("/aitem", headers=timeout("2.5")))
    assert response.status_code == 503
    assert shop.remaining == [2.5, 1.5, 0.5]


def test_django_repeats_the_delay_that_the_upstream_asked_for(shop):
    response = Client().get("/hint")
    assert (response.status_code, response.headers["Retry-After"]) == (503, "7200")


def test_django_handles_other_errors_itself(shop):
    client = Client(raise_request_exception=False)
    assert client.get("/bug").status_code == 500


def test_the_health_view_of_django_shows_the_budgets(shop):
    assert "retry_budgets" in Client().get("/health").json()


class Quiet(WSGIRequestHandler):
    def log_message(self, *_): ...


def test_a_real_server_of_django_answers_503(shop):
    server = make_server("127.0.0.1", 0, get_wsgi_application(), handler_class=Quiet)
    thread = threading.Thread(target=server.handle_request)
    thread.start()
    connection = http.client.HTTPConnection(*server.server_address, timeout=20)
    connection.request("GET", "/item", headers=timeout("2.5"))
    response = connection.getresponse()
    assert (response.status, json.load(response)["reason"]) == (503, "elapsed")
    connection.close()
    thread.join()
    server.server_close()
