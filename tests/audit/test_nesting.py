"""Retries within retries, and what multiplies them."""

import time

import pytest

from retrykit.audit._project import Project
from tests._support.audited import (
    audit_project,
    audit_texts,
    findings_of,
    read_text,
)

RULES = ("nested-retries", "library-retries-too")


def multiplied(text="", **texts):
    """Return the findings about multiplied retries, with their rules and places."""
    _, findings = audit_texts(**({"module": text} if text else {}), **texts)
    return [
        f"{each.site.path}:{each.line}: {each.rule}: {each.message}"
        for each in findings
        if each.rule in RULES
    ]


IMPORTS = """
import functools, time
import anthropic, boto3, httpx, litellm, openai, redis, requests, stripe
import kubernetes, pymongo
import stamina
from botocore.config import Config
from tenacity import *
from tenacity import retry, stop_after_attempt, retry_if_exception_type, Retrying

def three(*errors):
    return None
"""
THREE = "retry(stop=stop_after_attempt(3), reraise=True)"
CLIENTS = {
    "openai.OpenAI().responses.create()": "3 by openai.OpenAI",
    "openai.OpenAI(max_retries=4).chat.completions.create()": (
        "5 at line 15 by openai.OpenAI"
    ),
    "boto3.client('s3', config=Config(retries={'max_attempts': 4})).get_object()": (
        "5 at line 15 by boto3.client"
    ),
    "boto3.client('s3', config=Config()).get_object()": "3 by boto3.client",
    "openai.OpenAI().with_options(max_retries=5).responses.create()": (
        "6 by openai.OpenAI"
    ),
    "boto3.client('dynamodb').get_item()": "4 by boto3.client",
    "boto3.Session().client('s3').get_object()": "3 by boto3",
    "boto3.resource('s3', region_name=x).Bucket('b').load()": "3 by boto3.resource",
    "redis.Redis().get('key')": "11 by redis.Redis",
    "redis.Redis.from_url(url).get('key')": "11 by redis.Redis.from_url",
    "litellm.completion(model, messages)": "3 by litellm.completion",
    "stripe.Charge.create()": "3 by stripe.Charge.create",
    "httpx.Client(transport=httpx.HTTPTransport(retries=2)).get(url)": (
        "3 at line 15 by httpx.Client"
    ),
    "azure.storage.blob.BlobServiceClient(url).get_service_properties()": "4 by azure",
    "pymongo.MongoClient().admin.command('ping')": "2 by pymongo.MongoClient",
    "elasticsearch.Elasticsearch().search()": "4 by elasticsearch.Elasticsearch",
}


@pytest.mark.parametrize("call", CLIENTS)
def test_a_client_retries_within_each_attempt(call):
    name = call.partition(".")[0]
    text = f"{IMPORTS}import {name}\n@{THREE}\ndef fetch():\n    return {call}\n"
    expected = CLIENTS[call]
    [found] = multiplied(text)
    count = int(expected.split()[0])
    assert f"library-retries-too: up to {3 * count} requests: 3 x {count}; " in found
    assert f"3 here, {expected}" in found


@pytest.mark.parametrize(
    "call",
    [
        "openai.OpenAI(max_retries=0).responses.create()",
        "openai.OpenAI(max_retries=count).responses.create()",
        "openai.OpenAI().with_options(max_retries=0).responses.create()",
        "openai.OpenAI().copy()",
        "openai.OpenAI()",
        "litellm.completion(model, max_retries=0)",
        "redis.Redis(retry=mine).get('key')",
        "unknown().responses.create()",
        "unknown().with_options(max_retries=2).responses.create()",
        "clients['a'].with_options(max_retries=2).responses.create()",
        "requests.Session().get(url)",
        "requests.get(url)",
        "httpx.Client(timeout=httpx.Timeout(3)).get(url)",
        "retry(stop=stop_after_attempt(1))(time.sleep)",
        "openai.OpenAI",
        "stripe.Charge.new()",
        "boto3.client('s3', config=settings).get_object()",
        "redis.Redis(retry=redis.retry.Retry(backoff, -1)).get('key')",
        "pymongo.MongoClient(retryReads=False, retryWrites=False).admin.command('x')",
        "pymongo.MongoClient(*settings).admin.command('x')",
        "kubernetes.client.V1Pod().method()",
        "openai.OpenAI().chat[0].create()",
    ],
)
def test_what_does_not_certainly_retry_is_not_told(call):
    text = f"{IMPORTS}@{THREE}\ndef fetch():\n    return {call}\n"
    assert multiplied(text) == []


FUNCTIONS = f"""
{IMPORTS}
@{THREE}
def inner():
    requests.get("https://example.org")
"""
OUTER = {
    "a decorator": f"@{THREE}\ndef outer():\n    inner()\n",
    "two steps": f"def step(): inner()\n@{THREE}\ndef outer():\n    step()\n",
    "a block": f"""
def outer():
    for attempt in Retry{THREE.replace("retry", "ing")}:
        with attempt:
            inner()
""",
    "an async block": """
async def outer():
    async for attempt in stamina.retry_context(on=Exception, attempts=3):
        with attempt:
            inner()
""",
    "a block of an object": f"""
retrying = Retry{THREE.replace("retry", "ing")}
def outer():
    for attempt in retrying:
        with attempt:
            inner()
""",
    "a loop": """
def outer():
    for _ in range(3):
        try:
            return inner()
        except Exception as error:
            last = error
            time.sleep(1)
    raise last
""",
    "an object that is called": f"""
def outer():
    return Retry{THREE.replace("retry", "ing")}(inner)
""",
    "an object whose method is called": f"""
def outer():
    return Retry{THREE.replace("retry", "ing")}.call(inner)
""",
    "a lambda": f"""
def outer(x):
    return Retry{THREE.replace("retry", "ing")}(
        lambda: inner(x)
    )
""",
    "a partial": f"""
def outer(x):
    return Retry{THREE.replace("retry", "ing")}(functools.partial(inner, x))
""",
    "a decorator with a name": f"""
robust = {THREE}
@robust
def outer():
    inner()
""",
    "a factory of decorators": f"""
def robust():
    return {THREE}
@robust()
def outer():
    inner()
""",
    "a decorator of the project": """
def robust(function):
    @functools.wraps(function)
    def wrapper(*args):
        for _ in range(3):
            try:
                return function(*args)
            except Exception as error:
                last = error
                time.sleep(1)
        raise last
    return wrapper
@robust
def outer():
    inner()
""",
    "a function that calls another with retries": """
def call_with_retries(function):
    for _ in range(3):
        try:
            return function()
        except Exception as error:
            last = error
            time.sleep(1)
    raise last
def outer():
    call_with_retries(inner)
""",
    "a function that calls a lambda with retries": """
def call_with_retries(function):
    for _ in range(3):
        try:
            return function()
        except Exception as error:
            last = error
            time.sleep(1)
    raise last
def outer(x):
    call_with_retries(lambda: inner(x))
""",
    "a method": f"""
class Service:
    def load(self):
        inner()
    @{THREE}
    def outer(self):
        self.load()
""",
    "a method of a base class": f"""
class Base:
    def load(self):
        inner()
class Service(Base):
    @{THREE}
    def outer(self):
        self.load()
""",
    "an attribute": f"""
class Client:
    def load(self):
        inner()
class Service:
    def __init__(self):
        self.client = Client()
    @{THREE}
    def outer(self):
        self.client.load()
""",
    "an attribute of an annotated parameter": f"""
class Client:
    def load(self):
        inner()
class Service:
    def __init__(self, client: Client):
        self.client = client
    @{THREE}
    def outer(self):
        self.client.load()
""",
    "a function that returns a client": f"""
class Client:
    def load(self):
        inner()
def make_client():
    return Client()
@{THREE}
def outer():
    make_client().load()
""",
    "a context manager": f"""
class Client:
    def load(self):
        inner()
@{THREE}
def outer():
    with Client() as client:
        client.load()
""",
    "a constructor": f"""
class Client:
    def __init__(self):
        inner()
@{THREE}
def outer():
    Client()
""",
    "a bound task": """
from celery import shared_task
@shared_task(bind=True, max_retries=2)
def outer(self):
    try:
        inner()
    except Exception as error:
        raise self.retry(exc=error)
""",
}


@pytest.mark.parametrize("name", OUTER)
def test_nested_retries_multiply(name):
    [found] = multiplied(FUNCTIONS + OUTER[name])
    assert "nested-retries: up to 9 calls: 3 x 3; 3 here, 3 at line 14" in found


def test_both_places_are_named_across_modules():
    inner = f"{IMPORTS}\n@{THREE}\ndef inner(): ..."
    outer = f"{IMPORTS}\nfrom api.inner import inner as load\n@{THREE}\ndef outer():\n"
    [found] = multiplied(**{"api.inner": inner, "api.outer": f"{outer}    load()\n"})
    assert found.startswith("api.outer.py:14: nested-retries: up to 9 calls: 3 x 3; ")
    assert found.endswith("3 at api.inner.py:13 (tenacity)")


def test_three_layers_are_told_once():
    text = f"""{FUNCTIONS}
class Sdk:
    def __init__(self):
        self.client = openai.OpenAI()

    @{THREE}
    def ask(self):
        self.client.responses.create()

    @{THREE}
    def talk(self):
        self.ask()
"""
    [found] = multiplied(text)
    assert "nested-retries: up to 27 requests: 3 x 3 x 3; 3 here" in found


@pytest.mark.parametrize(
    ("outer", "inner", "is_multiplied"),
    [
        ("Exception", THREE, True),
        ("ConnectionError", THREE, True),
        # Of tenacity, another error is raised in the end.
        ("ConnectionError", "retry(stop=stop_after_attempt(3))", False),
        ("RetryError", "retry(stop=stop_after_attempt(3))", True),
        ("Exception", "retry(stop=stop_after_attempt(3))", True),
        ("ValueError", "stamina.retry(on=ConnectionError, attempts=3)", False),
        ("OSError", "stamina.retry(on=ConnectionError, attempts=3)", True),
        ("ConnectionError", "stamina.retry(on=OSError, attempts=3)", True),
        ("httpx.HTTPError", "stamina.retry(on=httpx.ConnectError, attempts=3)", True),
        ("httpx.ReadError", "stamina.retry(on=httpx.ConnectError, attempts=3)", False),
        ("MyError", "stamina.retry(on=httpx.ConnectError, attempts=3)", True),
        ("ValueError", "stamina.retry(on=httpx.ConnectError, attempts=3)", False),
        ("ValueError", "stamina.retry(on=is_transient, attempts=3)", True),
    ],
)
def test_an_error_that_is_not_retried_multiplies_nothing(outer, inner, is_multiplied):
    text = f"""{IMPORTS}
MyError = imported()
@{inner}
def inner(): ...

@retry(stop=stop_after_attempt(3), retry=retry_if_exception_type({outer}))
def outer():
    inner()
"""
    assert len(multiplied(text)) == is_multiplied


@pytest.mark.parametrize(
    ("client", "error", "is_multiplied"),
    [
        ("openai.OpenAI().responses.create()", "ValueError", False),
        ("openai.OpenAI().responses.create()", "openai.APIError", True),
        ("openai.OpenAI().responses.create()", "openai.BadRequestError", True),
        ("openai.OpenAI().responses.create()", "MyError", True),
        ("redis.Redis().get(key)", "redis.ConnectionError", True),
        ("boto3.client('s3').get_object()", "KeyError", False),
    ],
)
def test_errors_of_clients(client, error, is_multiplied):
    text = f"""{IMPORTS}
@retry(stop=stop_after_attempt(3), retry=retry_if_exception_type({error}))
def outer():
    {client}
"""
    assert len(multiplied(text)) == is_multiplied


def test_a_hidden_error_is_retried_only_by_its_result():
    inner = f"""{IMPORTS}
def inner():
    for _ in range(3):
        try:
            return fetch()
        except OSError:
            time.sleep(1)
    return None
"""
    errors = f"{inner}\n@{THREE}\ndef outer():\n    return inner()\n"
    results = (
        f"{inner}\n@retry(stop=stop_after_attempt(3), "
        "retry=retry_if_result(bool))\ndef outer():\n    return inner()\n"
    )
    assert multiplied(errors) == []
    assert "up to 9 calls: 3 x 3" in multiplied(results)[0]


def test_retrykit_does_not_retry_what_it_has_retried():
    text = """
import retrykit

@retrykit.retry(max_attempts=3)
def inner(): ...

@retrykit.retry(max_attempts=3)
def outer():
    inner()
"""
    assert multiplied(text) == []


@pytest.mark.parametrize(
    ("outer", "inner", "expected"),
    [
        (
            "retry(stop=stop_after_attempt(n))",
            THREE,
            "calls multiply: ? x 3; ? here, 3",
        ),
        (
            THREE,
            "retry(stop=stop_after_attempt(n), reraise=True)",
            "calls multiply: 3 x ?",
        ),
        (THREE, "retry(reraise=True)", None),
        ("retry()", THREE, None),
        (
            "retry(stop=stop_after_delay(60))",
            THREE,
            "calls multiply: as many as fit in 1 min x 3",
        ),
        ("retry(stop=stop_after_delay(n))", THREE, "calls multiply: ? x 3"),
        ("retry(stop=stop_after_attempt(1))", THREE, None),
    ],
)
def test_numbers_that_are_not_known(outer, inner, expected):
    text = f"""{IMPORTS}
@{inner}
def inner(): ...

@{outer}
def outer():
    inner()
"""
    found = multiplied(text)
    if expected is None:
        assert found == []
    else:
        assert expected in found[0]


def test_sessions_have_the_retries_that_are_mounted_near_them():
    text = f"""{IMPORTS}
from requests.adapters import HTTPAdapter, Retry

def make_session():
    session = requests.Session()
    session.mount("https://", HTTPAdapter(max_retries=Retry(4)))
    return session

class Api:
    def __init__(self):
        self.session = requests.Session()
        self._configure()
        self.other = httpx.Client()

    def _configure(self):
        self.session.mount("https://", HTTPAdapter(max_retries=2))

    @{THREE}
    def load(self):
        return self.session.get("https://example.org")

    @{THREE}
    def store(self):
        return self.other.put("https://example.org")

@{THREE}
def load():
    return make_session().get("https://example.org")

class Other:
    session = requests.Session()

    def unrelated(self):
        return Retrying(stop=stop_after_attempt(2))

    @{THREE}
    def load(self):
        return self.session.get("https://example.org")
"""
    of_class, of_function = sorted(multiplied(text))
    assert "3 x 3; 3 here, 3 at line 27 by requests.Session" in of_class
    assert "3 x 5; 3 here, 5 at line 17 by requests.Session" in of_function


def test_recursion_and_cycles_end():
    text = f"""{IMPORTS}
@{THREE}
def first(n):
    first(n - 1)
    second(n)

@{THREE}
def second(n):
    first(n)
"""
    [found] = multiplied(text)
    assert "up to 9 calls: 3 x 3" in found


def test_definitions_that_lead_to_themselves_end():
    text = f"""{IMPORTS}
def a(): return b()
def b(): return a()
made = a()

class Own:
    part = Own().part

@{THREE}
def outer():
    a().load()
    made.load()
    Own().part.load()
    Retrying(stop=stop_after_attempt(2))(made)
"""
    assert multiplied(text) == []


def test_long_chains_and_many_paths_are_read_in_time():
    steps = 300
    text = f"{IMPORTS}\n@{THREE}\ndef step0(): ...\n" + "".join(
        f"def step{n}():\n    step{n - 1}()\n    step{n - 1}()\n    step{n - 2}()\n"
        for n in range(2, steps)
    )
    text += f"def step1():\n    step0()\n@{THREE}\ndef outer():\n    step30()\n"
    start = time.perf_counter()
    assert "up to 9 calls: 3 x 3" in multiplied(text)[0]
    assert time.perf_counter() - start < 10


def test_a_block_within_a_block_of_one_function():
    text = f"""{IMPORTS}
def load():
    for attempt in Retrying(stop=stop_after_attempt(2)):
        with attempt:
            for attempt in stamina.retry_context(on=OSError, attempts=4):
                with attempt:
                    fetch()
"""
    [found] = multiplied(text)
    assert "nested-retries: up to 8 calls: 2 x 4" in found


def test_other_loops_over_attempts_are_no_blocks():
    text = f"""{IMPORTS}
def load():
    for each in Retrying(stop=stop_after_attempt(2)):
        with open(each) as file, each:
            openai.OpenAI().responses.create()
    for attempt in things:
        with attempt:
            openai.OpenAI().responses.create()
"""
    assert multiplied(text) == []


TWICE = "not-idempotent"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("requests.post('https://shop.example/orders', json=order)", "POST"),
        ("requests.request('PATCH', 'https://shop.example/orders')", "PATCH"),
        ("self.session.post(url, json=order)", "POST"),
        ("client.post(url, json=order)", "POST"),
        ("httpx.AsyncClient().post(url)", "POST"),
        ("requests.put(url)", ""),
        ("requests.request('GET', url)", ""),
        ("requests.post(f'https://shop.example/{x}/search')", ""),
        ("requests.post(url, headers={'Idempotency-Key': key})", ""),
        ("queue.post(order)", ""),
        ("unknown(x).post(order)", ""),
        ("self.board.post(order)", ""),
        ("post(order)", ""),
        ("http[0].post(order)", ""),
    ],
)
def test_requests_that_may_take_effect_twice(body, found):
    text = f"""
import httpx, requests, stamina

client = httpx.Client()

class Orders:
    def __init__(self, session, board):
        self.session = session()
        self.board = board()

    @stamina.retry(on=(OSError, httpx.HTTPError), attempts=3)
    def order(self, order):
        return {body}
"""
    messages = findings_of(text, TWICE)
    assert [each.split()[1] for each in messages] == ([found] if found else [])


@pytest.mark.parametrize(
    ("decorator", "name"),
    [
        ("stamina.retry(on=httpx.ConnectError)", "order"),
        ("stamina.retry(on=is_transient)", "order"),
        ("stamina.retry(on=OSError)", "search_orders"),
    ],
)
def test_requests_that_are_safe_to_repeat(decorator, name):
    text = f"""
import httpx, stamina
@{decorator}
def {name}():
    return httpx.post("https://shop.example/orders", json={{}})
"""
    assert findings_of(text, TWICE) == []


@pytest.mark.parametrize(
    ("decorator", "call", "message"),
    [
        ("stamina.retry(on=OSError)", "requests.get(url, timeout=60)", "1 min"),
        ("stamina.retry(on=OSError)", "requests.get(url, timeout=(3, 50))", "50 s"),
        (
            "stamina.retry(on=OSError)",
            "httpx.get(url, timeout=httpx.Timeout(90))",
            "1 min",
        ),
        (
            "stamina.retry(on=OSError)",
            "aiohttp.ClientSession().get(url, timeout=aiohttp.ClientTimeout(total=45))",
            "45 s",
        ),
        ("stamina.retry(on=OSError)", "requests.get(url, timeout=(3, x))", ""),
        ("stamina.retry(on=OSError)", "requests.get(url, timeout=x)", ""),
        ("stamina.retry(on=OSError)", "requests.get(url, timeout=10)", ""),
        ("stamina.retry(on=OSError)", "page.click(timeout=30000)", ""),
        (
            "stamina.retry(on=OSError, timeout=None)",
            "requests.get(url, timeout=60)",
            "",
        ),
        ("stamina.retry(on=OSError, timeout=x)", "requests.get(url, timeout=60)", ""),
    ],
)
def test_a_timeout_that_leaves_no_time(decorator, call, message):
    text = f"""
import aiohttp, httpx, requests, stamina
@{decorator}
def load(client):
    return {call}
"""
    found = findings_of(text, "timeout-never-retried")
    assert len(found) == bool(message)
    assert not found or f"one attempt may take {message}" in found[0]


HINT = "hint-ignored"
THROTTLED = """
import requests, time, stamina, openai
from tenacity import *
{before}
@{decorator}
def load():
    response = requests.get(url)
    if {test}:
        raise ConnectionError
"""


@pytest.mark.parametrize(
    ("before", "decorator", "test", "is_found"),
    [
        ("", "stamina.retry(on=OSError)", "response.status_code == 429", True),
        ("", "stamina.retry(on=OSError)", "response.status_code in (429, 503)", True),
        ("", "stamina.retry(on=OSError)", "response.status_code >= 500", False),
        ("", "stamina.retry(on=openai.RateLimitError)", "response", True),
        ("", "retry(wait=wait_mine(), retry=mine)", "response.status == 429", False),
        ("", "retry(stop=stop_after_attempt(1))", "response.status == 429", False),
        (
            "def hint(r): return r.headers['Retry-After']",
            "stamina.retry(on=OSError)",
            "response.status_code == 429",
            False,
        ),
        (
            "def hint(r): return r.retry_after",
            "stamina.retry(on=OSError)",
            "response.status_code == 429",
            False,
        ),
    ],
)
def test_hints_of_servers_that_are_ignored(before, decorator, test, is_found):
    text = THROTTLED.format(before=before, decorator=decorator, test=test)
    assert len(findings_of(text, HINT)) == is_found


def test_a_status_outside_of_the_loop_is_not_that_of_it():
    loop = """
    for _ in range(3):
        try:
            return requests.get(url)
        except OSError as error:
            last = error
            time.sleep(1)
            {inside}
    {outside}
    raise last
"""
    head = "import requests, time\ndef load():"
    check = "log(last.status == 429)"
    inside = head + loop.format(inside=check, outside="")
    outside = head + loop.format(inside="", outside=check)
    assert len(findings_of(inside, HINT)) == 1
    assert findings_of(outside, HINT) == []


def test_a_site_without_calls_is_as_it_is_written():
    text = "import stamina\n@stamina.retry(on=OSError)\ndef load(): ..."
    [site] = audit_texts(module=text)[0]
    assert site.behavior.timeout is None


def test_names_that_lead_nowhere():
    text = f"""{IMPORTS}
import mine
def count(): return 3
def nothing(): return None

class Service:
    unknown = made()

    def __init__(self, x):
        self.one = x
        self.two = 1
        self.two = 2

    @{THREE}
    def load(self):
        self.one.get()
        self.two.get()
        count().get()
        nothing().with_options(max_retries=3).get()
        Service(1).with_options(max_retries=3).get()
        made().inner.with_options(max_retries=3).get()
        made()(1)
        made(1)(2)(3)
        mine.Retrying(stop=stop_after_attempt(9)).call(count)
"""
    assert multiplied(text) == []


def test_a_loop_of_a_module_stands_in_no_function():
    text = f"""{FUNCTIONS}
for _ in range(3):
    try:
        inner()
        break
    except OSError as error:
        time.sleep(1)
"""
    assert multiplied(text) == []


def test_a_wrapper_is_no_function_that_it_wraps():
    text = f"""{IMPORTS}
def robust(function):
    @{THREE}
    def wrapper():
        return function()
    return wrapper

@robust
@robust
def outer(): ...

@robust
def inner():
    outer()
"""
    [found] = multiplied(text)
    assert "nested-retries: up to 9 calls: 3 x 3; 3 here, 3 at line 14" in found
    assert found.endswith("(tenacity) of outer")


def test_attributes_of_two_values_and_of_base_classes():
    text = f"""{FUNCTIONS}
import threading

class Base(threading.Thread):
    def __init__(self):
        self.load = inner

class Service(Base):
    first = inner
    Service = None

    @{THREE}
    def outer(self):
        self.first()
        self.start()
        super().load()

class Own(Own):
    def load(self):
        self.anything()
"""
    [found] = multiplied(text)
    assert "up to 9 calls: 3 x 3" in found


def test_modules_are_read_for_what_is_repeated_alone():
    text = """
    import first, prepare, table

    def load():
        prepare.begin()
        table.rows().apply(prepare.convert)
        for attempt in range(3):
            try:
                return first.send()
            except OSError:
                continue
    """
    first = "import second\ndef send():\n    return second.post()"
    asked = []

    def read(name):
        asked.append(name)
        return read_text(first, "first") if name == "first" else None

    audit_project(Project([read_text(text)], read))
    modules = {each.partition(".")[0] for each in asked}
    assert {"first", "second"} <= modules
    assert "prepare" not in modules
