"""What the auditor says of a call, held against the library itself."""

import contextlib
import random
from importlib import import_module

import pytest

from tests._support.audited import site_of
from tests._support.required import skip_without

RETRIES = 8
DRAWS = 400


def imported(name):
    """Return a module, or skip the test without it."""
    skip_without(name)
    return import_module(name)


def tenacity_delays(text):
    tenacity = imported("tenacity")
    made = eval(text, {"tenacity": tenacity})
    state = tenacity.RetryCallState(tenacity.Retrying(), None, (), {})

    def delay(retry):
        state.attempt_number = retry
        return made(state)

    return delay


def backoff_delays(text):
    backoff = imported("backoff")
    name, arguments, jitter = eval(text, {"backoff": backoff, "dict": dict})
    generator = name(**arguments)
    next(generator)
    delays = [generator.send(None) for _ in range(RETRIES)]
    return lambda retry: (
        delays[retry - 1] if jitter is None else jitter(delays[retry - 1])
    )


def stamina_delays(text):
    stamina = imported("stamina")
    tenacity = imported("tenacity")
    made = eval(text, {"stamina": stamina, "OSError": OSError})
    state = tenacity.RetryCallState(tenacity.Retrying(), None, (), {})

    def delay(retry):
        state.attempt_number = retry
        return made._jittered_backoff_for_rcs(state)

    return delay


def retrying_delays(text):
    retrying = imported("retrying")
    made = eval(text, vars(retrying))

    def delay(retry):
        jitter = random.random() * made._wait_jitter_max
        return (made.wait(retry, 0) + jitter) / 1000

    return delay


def urllib3_delays(text):
    urllib3 = imported("urllib3.util.retry")
    made = eval(text, vars(urllib3))
    failure = urllib3.RequestHistory("GET", "/", None, 503, None)
    return lambda retry: made.new(history=(failure,) * retry).get_backoff_time()


def httpx_retries_delays(text):
    library = imported("httpx_retries")
    made = eval(text, vars(library))
    return lambda retry: made.copy_with(attempts_made=retry).backoff_strategy()


def aiohttp_retry_delays(text):
    library = imported("aiohttp_retry")
    made = eval(text, vars(library))
    return made.get_timeout


def redis_delays(text):
    library = imported("redis.backoff")
    retries = imported("redis.retry")
    made = eval(text, vars(library) | {"Retry": retries.Retry})
    return made._backoff.compute


def google_delays(text):
    library = imported("google.api_core.retry")
    made = eval(text, vars(library))

    def delay(retry):
        delays = library.exponential_sleep_generator(
            made._initial, made._maximum, made._multiplier
        )
        return [next(delays) for _ in range(retry)][-1]

    return delay


def celery_delays(text):
    library = imported("celery.utils.time")
    settings = eval(text, {"dict": dict, "task": dict, "OSError": OSError})
    return lambda retry: library.get_exponential_backoff_interval(
        int(max(1.0, settings["retry_backoff"])),
        retry - 1,
        settings.get("retry_backoff_max", 600),
        full_jitter=settings.get("retry_jitter", True),
    )


def openai_delays(text):
    openai = imported("openai")
    models = imported("openai._models")
    made = eval(text, {"openai": openai})
    options = models.FinalRequestOptions(method="get", url="/", max_retries=RETRIES)
    return lambda retry: made._calculate_retry_timeout(
        RETRIES - retry + 1, options, None
    )


def retrykit_delays(text):
    import retrykit
    from retrykit import schedules

    names = {each: getattr(schedules, each) for each in schedules.__all__}
    made = eval(text, names | {"Policy": retrykit.Policy, "OSError": OSError})

    def delay(retry):
        low, high = made.schedule.bounds(retry)
        return random.uniform(low, high)

    return delay


TENACITY = "from tenacity import *\n"
# The library, a text that it evaluates, and the program in which it stands.
BACKOFF = "import backoff\nbackoff.on_exception(backoff.{}, OSError, max_tries=9{})"
CASES = [
    (
        tenacity_delays,
        text,
        f"from tenacity import *\nimport tenacity\nretry(wait={text})",
    )
    for text in (
        "tenacity.wait_fixed(2)",
        "tenacity.wait_random(1, 3)",
        "tenacity.wait_incrementing(1, 2, 9)",
        "tenacity.wait_incrementing(start=2)",
        "tenacity.wait_exponential()",
        "tenacity.wait_exponential(multiplier=1, min=4, max=10)",
        "tenacity.wait_exponential(0.5, 60, 3)",
        "tenacity.wait_random_exponential(multiplier=0.5, max=40)",
        "tenacity.wait_exponential_jitter(max=20)",
        "tenacity.wait_exponential_jitter(multiplier=2, jitter=3, min=1)",
        "tenacity.wait_fixed(1) + tenacity.wait_random(0, 2)",
        "tenacity.wait_exponential(max=8) + tenacity.wait_random(0, 2)",
        "tenacity.wait_combine(tenacity.wait_fixed(3), tenacity.wait_random(0, 1))",
        "tenacity.wait_none()",
    )
]
CASES += [
    (backoff_delays, real, BACKOFF.format(*ours))
    for real, ours in {
        "backoff.expo, {}, backoff.full_jitter": ("expo", ""),
        "backoff.expo, dict(base=3, factor=2, max_value=50), None": (
            ("expo", ", base=3, factor=2, max_value=50, jitter=None")
        ),
        "backoff.expo, dict(max_value=10), backoff.random_jitter": (
            ("expo", ", max_value=10, jitter=backoff.random_jitter")
        ),
        "backoff.fibo, {}, None": ("fibo", ", jitter=None"),
        "backoff.fibo, dict(max_value=6), backoff.full_jitter": (
            ("fibo", ", max_value=6")
        ),
        "backoff.constant, dict(interval=3), None": (
            ("constant", ", interval=3, jitter=None")
        ),
    }.items()
]
CASES += [
    (stamina_delays, text, f"import stamina\n{text}")
    for text in (
        "stamina.retry_context(on=OSError)",
        "stamina.retry_context(on=OSError, wait_initial=1, wait_max=20, wait_jitter=0)",
        "stamina.retry_context(OSError, 9, 60, 0.5, 30, 2, 3)",
    )
]
CASES += [
    (retrying_delays, text, f"from retrying import Retrying\n{text}")
    for text in (
        "Retrying(wait_fixed=500)",
        "Retrying(wait_random_min=100, wait_random_max=300)",
        "Retrying(wait_incrementing_start=100, wait_incrementing_increment=50)",
        "Retrying(wait_exponential_multiplier=100, wait_exponential_max=5000)",
        "Retrying(wait_fixed=500, wait_jitter_max=200)",
        "Retrying()",
    )
]
CASES += [
    (urllib3_delays, text, f"from urllib3.util import Retry\n{text}")
    for text in (
        "Retry(3)",
        "Retry(9, backoff_factor=0.5)",
        "Retry(9, backoff_factor=1, backoff_max=20, backoff_jitter=2)",
        "Retry(9, backoff_jitter=2)",
    )
]
CASES += [
    (httpx_retries_delays, text, f"from httpx_retries import Retry\n{text}")
    for text in (
        "Retry(9)",
        "Retry(9, backoff_factor=0.5)",
        "Retry(9, backoff_factor=1, backoff_jitter=0.3, max_backoff_wait=50)",
    )
]
CASES += [
    (
        aiohttp_retry_delays,
        text,
        f"from aiohttp_retry import {text.partition('(')[0]}\n{text}",
    )
    for text in (
        "ExponentialRetry(9)",
        "ExponentialRetry(9, start_timeout=1, max_timeout=20, factor=3)",
        "JitterRetry(9)",
        "RandomRetry(9, min_timeout=1, max_timeout=2)",
    )
]
CASES += [
    (
        redis_delays,
        f"Retry({text}, 9)",
        (
            f"from redis.retry import Retry\nfrom redis import backoff\n"
            f"Retry(backoff.{text}, 9)"
        ),
    )
    for text in (
        "ExponentialBackoff()",
        "ExponentialBackoff(cap=10, base=1)",
        "FullJitterBackoff(10, 1)",
        "EqualJitterBackoff(10, 1)",
        "ConstantBackoff(2)",
        "NoBackoff()",
        "default_backoff()",
    )
]
CASES += [
    (google_delays, text, f"from google.api_core.retry import Retry\n{text}")
    for text in ("Retry()", "Retry(initial=0.1, maximum=10, multiplier=1.5)")
]
CASES += [
    (
        celery_delays,
        f"task({text})",
        (
            f"from celery import shared_task as task\n"
            f"task(autoretry_for=(OSError,), {text})"
        ),
    )
    for text in (
        "retry_backoff=1",
        "retry_backoff=5, retry_backoff_max=100, retry_jitter=False",
    )
]
CASES += [
    (openai_delays, text, f"import openai\n{text}")
    for text in ("openai.OpenAI(api_key='x', max_retries=8)",)
]
CASES += [
    (
        retrykit_delays,
        text,
        (
            f"from retrykit import Policy\nfrom retrykit.schedules import "
            f"exponential, linear, constant, uniform, fibonacci\n{text}"
        ),
    )
    for text in (
        "Policy(on=OSError)",
        "Policy(schedule=exponential('500ms').cap('10s').full_jitter(), on=OSError)",
        "Policy(schedule=exponential(1, factor=3).equal_jitter().cap(60), on=OSError)",
        "Policy(schedule=exponential(1).at_least(3), on=OSError)",
        "Policy(schedule=linear(1).jitter(0.5), on=OSError)",
        "Policy(schedule=fibonacci('1s').cap(8), on=OSError)",
        "Policy(schedule=uniform(1, 2), on=OSError)",
        "Policy(schedule=constant(1).jitter(0.2), on=OSError)",
    )
]


@pytest.mark.parametrize(
    ("reader", "text", "program"), CASES, ids=[case[1] for case in CASES]
)
def test_delays_are_those_of_the_library(reader, text, program):
    delay = reader(text)
    delays = site_of(program).behavior.delays
    random.seed(1)
    for number in range(1, RETRIES + 1):
        longest = delays.longest(number)
        drawn = [delay(number) for _ in range(DRAWS if delays.jitter else 2)]
        assert max(drawn) <= longest + 1e-9
        # Whole seconds are drawn in Celery, and powers in aiohttp-retry.
        assert max(drawn) >= longest * (0.75 if delays.jitter else 1 - 1e-9)
        if delays.jitter and not delays.added and not delays.at_once:
            assert min(drawn) >= longest * delays.low - 1e-9


@pytest.mark.parametrize(
    "program",
    [
        f"{TENACITY}@retry(stop=stop_after_attempt(3))\ndef fetch(): fail()",
        (
            f"{TENACITY}@retry(stop=stop_any(stop_after_attempt(3), stop_never))"
            "\ndef fetch(): fail()"
        ),
        (
            "from tenacity import *\n@retry(stop=stop_all(stop_after_attempt(2), "
            "stop_after_attempt(4)))\ndef fetch(): fail()"
        ),
        (
            "import backoff\n@backoff.on_exception(backoff.constant, OSError, "
            "max_tries=4, "
            "interval=0)\ndef fetch(): fail()"
        ),
        (
            "import stamina\n@stamina.retry(on=OSError, attempts=3, wait_initial=0, "
            "wait_jitter=0)\ndef fetch(): fail()"
        ),
        (
            "from retrying import retry\n@retry(stop_max_attempt_number=3)\n"
            "def fetch(): fail()"
        ),
        "from retry.api import retry\n@retry(tries=3)\ndef fetch(): fail()",
        (
            "import opnieuw\n@opnieuw.retry(retry_on_exceptions=OSError, "
            "max_calls_total=3, "
            "retry_window_after_first_call_in_seconds=0.3)\ndef fetch(): fail()"
        ),
        (
            "from retrykit import retry\n@retry(schedule=[0, 0, 0], on=OSError)\n"
            "def fetch(): fail()"
        ),
        (
            "from retrykit import retry\n@retry(schedule=[0, 0, 0], max_attempts=2, "
            "on=OSError)\ndef fetch(): fail()"
        ),
    ],
)
def test_calls_are_those_of_the_library(program):
    skip_without(program.split()[1].partition(".")[0])
    calls = []

    def fail():
        calls.append(1)
        raise OSError

    names = {"fail": fail}
    exec(program, names)
    with contextlib.suppress(Exception):
        names["fetch"]()
    assert len(calls) == site_of(program).behavior.calls


@pytest.mark.parametrize(
    "condition",
    [
        "retry_if_not_exception_type(ValueError)",
        "retry_unless_exception_type(ValueError)",
        "retry_if_not_exception_type((ValueError, KeyboardInterrupt))",
        "retry_if_exception_type(OSError)",
        "retry_if_exception_type(OSError) | retry_if_not_exception_type(KeyError)",
        "retry_if_exception_type(OSError) & retry_if_not_exception_type(KeyError)",
        "retry_always",
    ],
)
def test_what_the_library_swallows_is_told(condition):
    skip_without("tenacity")
    program = (
        "from tenacity import *\nfrom tenacity import retry\n"
        f"@retry(stop=stop_after_attempt(2), retry={condition})\ndef fetch(): stop()"
    )
    calls = []

    def stop():
        calls.append(1)
        raise KeyboardInterrupt

    names = {"stop": stop}
    exec(program, names)
    with contextlib.suppress(KeyboardInterrupt, Exception):
        names["fetch"]()
    assert (len(calls) > 1) is site_of(program).behavior.swallows
