"""The message of every ConfigError of integrations that need a library."""

from pathlib import Path

import httpx
import pytest
import requests
from redis import Redis
from redis.asyncio import Redis as AsyncRedis
from requests.adapters import HTTPAdapter

import retrykit
from retrykit import ConfigError, Hedge, Policy, aretry, retry
from retrykit._core.rules import Rule
from retrykit._core.timeouts import AsArgument
from retrykit.analysis.charts import figure
from retrykit.analysis.simulation_charts import basin_figure, load_figure
from retrykit.budgets import Throttle, TokenBucket
from retrykit.integrations import (
    aiohttp as for_aiohttp,
    grpc as for_grpc,
    httpx as for_httpx,
    requests as for_requests,
)
from retrykit.integrations.aiohttp import RetryMiddleware
from retrykit.integrations.httpx import (
    AsyncRetryTransport,
    RetryTransport,
    policy as httpx_policy,
)
from retrykit.integrations.redis import (
    AsyncRedisBudget,
    AsyncRedisRateLimit,
    RedisBudget,
    RedisCircuitBreaker,
    RedisRateLimit,
)
from retrykit.integrations.requests import RetryAdapter, request_policy
from retrykit.integrations.temporal import retried
from retrykit.integrations.urllib3 import PolicyRetry, RetryPoolManager
from retrykit.limits import RateLimit
from retrykit.simulate import Basin
from tests import test_errors
from tests._support.celery_errors import ERRORS as CELERY_ERRORS
from tests._support.config_checks import untested_checks
from tests._support.dbos_errors import ERRORS as DBOS_ERRORS, USABLE
from tests._support.hook_errors import ERRORS as HOOK_ERRORS
from tests._support.procrastinate_errors import ERRORS as PROCRASTINATE_ERRORS
from tests._support.sql_errors import ERRORS as SQL_ERRORS
from tests._support.telemetry_errors import ERRORS as TELEMETRY_ERRORS

SECONDS = 'give seconds as a number, a timedelta, or text such as "1h30m"'
RULED = Policy(rules=[Rule((ConnectionError, TimeoutError), [1])])


def fetch():
    """Return nothing, where a policy was expected."""


SETTING_ERRORS = {
    "policy must be a Policy, got 9; write settings by their names, as "
    "max_attempts=4": lambda: httpx_policy(9),
    f"policy must be a Policy, got {fetch!r}; write @retry(policy()) above it": (
        lambda: httpx_policy(fetch)
    ),
    f"fn must be a function to retry, got {httpx_policy!r}; write retry(policy())": (
        lambda: retry(httpx_policy)
    ),
    f"fn must be a function to retry, got {for_grpc.policy!r}; write "
    "aretry(policy())": lambda: aretry(for_grpc.policy, max_attempts=3),
    "methods must be a set of HTTP methods, at least one, got 'POST'; "
    "None means every method": lambda: RetryTransport(methods="POST"),
    "nested must be 'respect' or 'retry' in a client, whose callers expect its own "
    "errors, got 'raise'": lambda: RetryTransport(nested="raise"),
    "hedge must be None where nothing can be sent twice: in a block, a stream, a job "
    "or a gRPC call, got Hedge(1.0); decorate the function that makes the call": (
        lambda: for_grpc.RetryInterceptor(hedge=Hedge(1))
    ),
    "raises must be 'last' in a client, whose callers expect its own errors, got "
    "'group'": lambda: for_grpc.RetryInterceptor(raises="group"),
    "extensions['retry'] must be a Policy, got 3; None sends once": lambda: (
        RetryTransport().handle_request(
            httpx.Request("GET", "http://[::1]/", extensions={"retry": 3})
        )
    ),
    "policy must be a Policy, got 4; None sends once": lambda: request_policy(
        4
    ).__enter__(),
    "transport must be a BaseTransport, got 5": lambda: RetryTransport(transport=5),
    "transport must be an AsyncBaseTransport, got 6": lambda: AsyncRetryTransport(
        transport=6
    ),
    "manager must be a PoolManager, got 7": lambda: RetryPoolManager(manager=7),
    "policy must be a Policy, got 19; write settings by their names, as "
    "max_attempts=4": lambda: for_grpc.policy(19),
    "limits must be 'any' in an interceptor, since the timeout of a call ends it, got "
    "'all'; decorate the function that makes the call": (
        lambda: for_grpc.RetryInterceptor(limits="all")
    ),
    "on_result must be None in an interceptor, which does not check messages, got "
    "<built-in function callable>; decorate the function that makes the call": (
        lambda: for_grpc.async_interceptors(on_result=callable)
    ),
    "methods must be a list of methods, at least one, got []; None means every "
    "method": lambda: for_grpc.RetryInterceptor(methods=[]),
    'policies must be a dict of policies, got Policy(); write {"name": policy}': (
        lambda: figure(Policy())
    ),
    "simulation must be a Simulation, got 5": lambda: load_figure(5),
    "basin must be a Basin, got 5": lambda: basin_figure(5),
    "simulation must be a Simulation, got 6": lambda: basin_figure(
        Basin((0, 1), (0, 1), ((True, True), (True, True)), {}), 6
    ),
    "rules must be empty on an engine that keeps no errors to count, got "
    f"{RULED.rules!r}; list the retried errors in on, and their delays in schedule": (
        lambda: retried(RULED)
    ),
}


def on_redis(client=None, bucket=None, kind=RedisBudget, **settings):
    settings = {"key": "retrykit:tests"} | settings
    return kind(client or Redis(), bucket or TokenBucket(), **settings)


SETTING_ERRORS |= {
    f"client must be a redis.Redis, got {str}; AsyncRedisBudget takes a "
    "redis.asyncio.Redis": lambda: on_redis("redis://:secret@localhost"),
    f"client must be a redis.asyncio.Redis, got {Redis}; RedisBudget takes a "
    "redis.Redis": lambda: on_redis(kind=AsyncRedisBudget),
    "bucket must be a TokenBucket, got Throttle(); write TokenBucket(500)": (
        lambda: on_redis(bucket=Throttle())
    ),
    "key must be a non-empty string such as 'retrykit:payments', got ''": lambda: (
        on_redis(key="")
    ),
    "key must be a non-empty string such as 'retrykit:payments', got b'k'": (
        lambda: on_redis(key=b"k")
    ),
    "flush_every must be a finite number >= 0, got -1": (
        lambda: on_redis(flush_every=-1)
    ),
    f"expire_after must be a finite number >= 0, got None; {SECONDS}": (
        lambda: on_redis(expire_after=None)
    ),
    "expire_after must be a duration from 1s to 365d, got '0s'": (
        lambda: on_redis(expire_after="0s")
    ),
}


def shared_rate(client=None, kind=RedisRateLimit, name="api", limit=None, **settings):
    return kind(client or Redis(), name, limit or RateLimit(5), **settings)


SETTING_ERRORS |= {
    f"client must be a redis.Redis, got {str}; AsyncRedisRateLimit takes a "
    "redis.asyncio.Redis": lambda: shared_rate("redis://:secret@localhost"),
    f"client must be a redis.asyncio.Redis, got {Redis}; RedisRateLimit takes a "
    "redis.Redis": lambda: shared_rate(kind=AsyncRedisRateLimit),
    "name must be a non-empty string, got b'rate'": lambda: shared_rate(name=b"rate"),
    'limit must be a RateLimit, got TokenBucket(); write RateLimit(100, per="1s")': (
        lambda: shared_rate(limit=TokenBucket())
    ),
    'local must be a RateLimit, got 5; write RateLimit(100, per="1s")': (
        lambda: shared_rate(local=5)
    ),
}


def shared_breaker(client=None, name="api", breaker=None, **settings):
    return RedisCircuitBreaker(client or Redis(), name, breaker, **settings)


SETTING_ERRORS |= {
    f"client must be a redis.Redis, got {str}; it is used in a thread of its own": (
        lambda: shared_breaker("redis://:secret@localhost")
    ),
    f"client must be a redis.Redis, got {AsyncRedis}; it is used in a thread of its "
    "own": lambda: shared_breaker(AsyncRedis()),
    "name must be a non-empty string, got b'api'": lambda: shared_breaker(name=b"api"),
    "breaker must be a CircuitBreaker, got TokenBucket(); write CircuitBreaker()": (
        lambda: shared_breaker(breaker=TokenBucket())
    ),
    "quorum must be a number > 0 and <= 1, got 0; 0.5 is half of the processes": (
        lambda: shared_breaker(quorum=0)
    ),
    "quorum must be a finite number >= 0 and <= 1, got 5; 0.5 is half of the "
    "processes": lambda: shared_breaker(quorum=5),
    "at_least must be an integer >= 2, got 1; otherwise one process in trouble opens "
    "it for all": lambda: shared_breaker(at_least=1),
    "expire_after must be at least twice refresh_every, 2.0, got '3s'": (
        lambda: shared_breaker(refresh_every=2, expire_after="3s")
    ),
}

SETTING_ERRORS |= {
    "attempt_timeout must be a duration in a middleware, which cannot set aiohttp's "
    "timeouts, got AsArgument(5.0, 'timeout'); write attempt_timeout=5.0": (
        lambda: RetryMiddleware(attempt_timeout=AsArgument(5))
    ),
}

RETRYING = HTTPAdapter(max_retries=3)
FEW = RateLimit(3, "1s")
INSTEAD = "RetryPoolManager and RetryAdapter support it"

SETTING_ERRORS |= {
    f"adapter must be a BaseAdapter, got {HTTPAdapter!r}": (
        lambda: RetryAdapter(adapter=HTTPAdapter)
    ),
    f"adapter must be one that does not retry by itself, got {RETRYING!r}; leave its "
    "max_retries at 0": lambda: RetryAdapter(adapter=RETRYING),
    "retries must be False, or a Retry that limits all but redirects to 0, got 3; "
    "leave it out, since the policy retries": (
        lambda: RetryPoolManager().request("GET", "http://127.0.0.1:1", retries=3)
    ),
    "policy must be a Policy, got 4": lambda: PolicyRetry(4),
    f"attempt_timeout must be left out where urllib3 makes the attempts, got "
    f"{AsArgument(7)!r}; {INSTEAD}": (
        lambda: PolicyRetry(attempt_timeout=AsArgument(7))
    ),
    f"admission must be left out where urllib3 makes the attempts, got "
    f"({FEW!r},); {INSTEAD}": lambda: PolicyRetry(admission=[FEW]),
}


SESSION, CLIENT = requests.Session(), httpx.Client()

SETTING_ERRORS |= {
    f"client must be a Client or an AsyncClient of httpx, got {SESSION!r}": (
        lambda: for_httpx.download(SESSION, "http://[::1]/")
    ),
    f"session must be a Session, got {CLIENT!r}": (
        lambda: for_requests.download_to(CLIENT, "http://[::1]/", "file")
    ),
    f"session must be a ClientSession, got {CLIENT!r}": (
        lambda: for_aiohttp.events(CLIENT, "http://[::1]/")
    ),
    "headers must be headers without 'range', which the stream sets, got "
    "{'Range': 'bytes=5-'}": (
        lambda: for_httpx.download_to(
            CLIENT, "http://[::1]/", "file", headers={"Range": "bytes=5-"}
        )
    ),
    "last_event_id must be a string without line breaks and NUL, got '1\\n2'": (
        lambda: for_requests.events(SESSION, "http://[::1]/", last_event_id="1\n2")
    ),
}

OTHER_ERRORS = [CELERY_ERRORS, DBOS_ERRORS, PROCRASTINATE_ERRORS, SQL_ERRORS]
for more in [*OTHER_ERRORS, TELEMETRY_ERRORS, HOOK_ERRORS]:
    # Or a row would overwrite another.
    assert not SETTING_ERRORS.keys() & more.keys()
    SETTING_ERRORS |= more


@pytest.mark.parametrize(
    ("message", "raise_error"),
    SETTING_ERRORS.items(),
    ids=[message.partition(", got")[0][:60] for message in SETTING_ERRORS],
)
def test_config_errors_name_the_argument_the_rule_and_the_value(message, raise_error):
    """`{name} must be {rule}, got {value!r}; {suggestion}`."""
    with pytest.raises(ConfigError) as caught:
        raise_error()
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("message", "raise_error"),
    SETTING_ERRORS.items(),
    ids=[message.partition(", got")[0][:60] for message in SETTING_ERRORS],
)
def test_the_traceback_of_a_config_error_ends_at_the_line_of_the_caller(
    message, raise_error
):
    with pytest.raises(ConfigError) as caught:
        raise_error()
    own = test_errors.own_frames(caught.value)
    assert not test_errors.has_own_cause(caught.value)
    assert len(own) <= 1 or own[0] in LATER


LATER = {"apply_async", "as_json", "capabilities", "handle_request", "on_bound"}
LATER |= {"request_policy", "run", "start_as", "task", "urlopen"}
"""The first functions of the package in the tracebacks of later errors."""


@pytest.mark.skipif(not USABLE, reason="DBOS cannot use this SQLite")
def test_every_check_of_the_package_is_in_one_of_the_tables():
    rows = test_errors.SETTING_ERRORS | test_errors.CALL_ERRORS | SETTING_ERRORS
    files = Path(retrykit.__file__).parent.rglob("*.py")
    # Those of the formats of other systems are told with their lines, by their tests;
    # of values in source code, none is an error.
    left_out = {"_foreign", "_libraries"}
    others = [path for path in files if left_out.isdisjoint(path.parts)]
    assert untested_checks(rows, others) == []
