"""The shortest and the longest delays of each preset, as its original has them.

`nox -s originals` compares whole distributions; this is what it found, for the default
and for other parameters. The last number is that of the attempts; None is no limit.
"""

import pytest

from retrykit import presets
from retrykit.config._preset_names import parse_preset

# Of a few SDKs.
QUARTERS = [(0.375, 0.5), (0.75, 1), (1.5, 2), (3, 4), (6, 8), (6, 8)]

BOUNDS = {
    "stamina": ([(0.1, 1.1), (0.2, 1.2), (0.4, 1.4), (0.8, 1.8)], 10),
    "urllib3": ([(0, 0), (0, 0)], 11),
    "urllib3:total=5,backoff_factor=2,backoff_max=20s,backoff_jitter=3s": (
        [(0, 0), (4, 7), (8, 11), (16, 19), (20, 20)],
        6,
    ),
    "anthropic": ([(0.375, 0.5), (0.75, 1)], 3),
    "anthropic:max_retries=9": (QUARTERS, 10),
    "aws-dynamodb": ([(0, 0.025), (0, 0.05), (0, 0.1)], 4),
    "aws-dynamodb:max_attempts=12": ([(0, 0.025 * 2**n) for n in range(9)], 12),
    "aws-legacy": ([(0, 1), (0, 2), (0, 4), (0, 8)], 5),
    "aws-legacy:service=dynamodb": ([(0.05 * 2**n,) * 2 for n in range(9)], 10),
    "aws-sdk": ([(0, 0.1), (0, 0.2), (0, 0.4)], 3),
    "aws-sdk:sdk=cpp": ([(0, 0), (0.05, 0.05), (0.1, 0.1), (0.2, 0.2)], 11),
    "aws-sdk:sdk=dotnet": ([(0, 1), (0, 2), (0, 4), (0, 8), (0, 16), (0, 20)], 3),
    "aws-sdk:sdk=go": ([(0, 2), (0, 4), (0, 8), (0, 16), (20, 20)], 3),
    "aws-sdk:sdk=java": ([(0, 0.1), (0, 0.2), (0, 0.4)], 4),
    "azure-core": ([(0, 0), (1.6, 1.6), (3.2, 3.2)], 4),
    "azure-core:retry_status=9,retry_backoff_factor=3,retry_backoff_max=20s": (
        [(0, 0), (6, 6), (12, 12), (20, 20)],
        10,
    ),
    "azure-core:retry_total=2,retry_mode=fixed": ([(0, 0), (0.8, 0.8)], 3),
    "azure-storage": ([(15, 21), (21, 27), (39, 45)], 4),
    "azure-storage:initial_backoff=4s,increment_base=2,retry_total=2": (
        [(3, 9), (5, 11)],
        3,
    ),
    "client-go": ([(0.01, 0.011)] * 4, 5),
    "client-go:steps=4,factor=5,jitter=2": ([(0.01, 0.03), (0.05, 0.15)], 4),
    "elastic-transport": ([(0, 0)] * 3, 4),
    "elastic-transport:retry_backoff_base=3s,retry_backoff_cap=2s": (
        [(0.75, 1.5), (1, 2)],
        4,
    ),
    "fern": ([(0.9, 1.1), (1.8, 2.2)], 3),
    "google-genai": ([(1, 2), (2, 3), (4, 5), (8, 9)], 5),
    "google-genai:initial_delay=2s,exp_base=3,jitter=5s,max_delay=20s": (
        [(2, 7), (6, 11), (18, 20), (20, 20)],
        5,
    ),
    "openai": ([(0.375, 0.5), (0.75, 1)], 3),
    "openai:max_retries=9": (QUARTERS, 10),
    "pymongo": ([(0, 0.2), (0, 0.4)], 3),
    "pymongo:max_adaptive_retries=9": ([(0, 0.2 * 2**n) for n in range(6)], 10),
    "stainless": ([(0.375, 0.5), (0.75, 1)], 3),
    "stainless:initial_retry_delay=1s,max_retry_delay=10s": ([(0.75, 1), (1.5, 2)], 3),
    "stripe": ([(0.5, 0.5), (0.5, 1)], 3),
    "stripe:max_network_retries=6": (
        [(0.5, 0.5), (0.5, 1), (1, 2), (2, 4), (2.5, 5), (2.5, 5)],
        7,
    ),
    "aiohttp-retry": ([(0.2, 0.2), (0.4, 0.4), (0.8, 0.8)], 3),
    "aiohttp-retry:attempts=9,start_timeout=0.5s,max_timeout=20s,factor=3": (
        [(1.5, 1.5), (4.5, 4.5), (13.5, 13.5), (20, 20)],
        9,
    ),
    "backoff-expo": ([(0, 1), (0, 2), (0, 4)], None),
    "backoff-expo:max_tries=8,base=3,factor=0.5s,max_value=4s": (
        [(0, 0.5), (0, 1.5), (0, 4)],
        8,
    ),
    "google-api-core": (
        [(0, 1), (0, 2), (0, 4), (0, 8), (0, 16), (0, 32), (0, 60)],
        None,
    ),
    "google-api-core:initial=30s,maximum=20s": ([(0, 20), (0, 20)], None),
    "httpx-retries": ([(0, 0), (0, 0)], 11),
    "httpx-retries:total=4,backoff_factor=2,backoff_jitter=0.25,max_backoff_wait=12s": (
        [(3, 4), (6, 8), (12, 12)],
        5,
    ),
    "langchain": ([(1, 2), (2, 3), (4, 5)], 3),
    "langchain:stop_after_attempt=0,initial=0.5s,max=5s,exp_base=3,jitter=4s": (
        [(0.5, 4.5), (1.5, 5), (4.5, 5)],
        None,
    ),
    "redis-py": ([(0, 0.02), (0, 0.04), (0, 0.08)], 11),
    "redis-py:retries=5,base=1s,cap=10s": ([(0, 2), (0, 4), (0, 8), (0, 10)], 6),
    "requests": ([(0, 0)], 1),
    "requests:max_retries=3": ([(0, 0), (0, 0)], 4),
    "dbos-step": ([(1, 1), (2, 2)], 3),
    "dbos-step:interval_seconds=100s,max_attempts=6,backoff_rate=3": (
        [(100, 100), (300, 300), (900, 900), (2700, 2700), (3600, 3600)],
        6,
    ),
    "huey": ([(0, 0)], 1),
    "huey:retries=4,retry_delay=10s": ([(10, 10), (10, 10)], 5),
    "huey:retries=9,retry_delay=1.5s,retry_backoff=2": ([(1.5, 1.5), (3, 3)], 10),
    "procrastinate": ([(0, 0), (0, 0)], None),
    "procrastinate:max_attempts=3,wait=1,linear_wait=10,exponential_wait=2": (
        [(3, 3), (15, 15), (29, 29)],
        4,
    ),
    "rq": ([(0, 0), (0, 0), (0, 0)], 4),
    "rq:max=2,interval=30s": ([(30, 30), (30, 30)], 3),
    "taskiq": ([(5, 5), (5, 5)], 3),
    "taskiq:default_retry_count=6,use_delay_exponent=true,max_delay_exponent=12s": (
        [(5, 5), (10, 10), (12, 12)],
        6,
    ),
    "taskiq:use_jitter=true,use_delay_exponent=false": ([(5, 6), (5, 6)], 3),
    "axios-retry": ([(0, 0), (0, 0)], 4),
    "axios-retry:retry_delay=exponential,delay_factor=500us": (
        [(0.001, 0.0012), (0.002, 0.0024), (0.004, 0.0048)],
        4,
    ),
    "axios-retry:retry_delay=linear": ([(0.1, 0.1), (0.2, 0.2), (0.3, 0.3)], 4),
    "bullmq": ([(1, 1), (2, 2)], 3),
    "bullmq:type=fixed,jitter=0.25,delay=2s": ([(1.5, 2), (1.5, 2)], 3),
    "got": ([(1, 1.1), (2, 2.1), (4, 4.1)], 3),
    "got:limit=30,backoff_limit=0s": ([(0.001, 0.1), (0.001, 0.1)], 31),
    "got:limit=30,noise=0ms": ([(1, 1), (2, 2)], 23),
    "ky": ([(0.3, 0.3), (0.6, 0.6)], 3),
    "ky:jitter=true,backoff_limit=1s": ([(0, 0.3), (0, 0.6), (0, 1), (0, 1)], 3),
    "node-retry": ([(1, 1), (2, 2), (4, 4)], 11),
    "node-retry:randomize=true,max_timeout=7s": ([(1, 2), (2, 4), (4, 7), (7, 7)], 11),
    "node-retry:min_timeout=0s,retries=2": ([(0.001, 0.001), (0.002, 0.002)], 3),
    "p-retry": ([(1, 1), (2, 2), (4, 4)], 11),
    "p-retry:randomize=true,factor=1.5,max_timeout=2.0005s": (
        [(1, 2), (1.5, 2.001), (2.001, 2.001)],
        11,
    ),
    "active-job": ([(3, 3.45), (3, 3.45)], 5),
    "active-job:jitter=0,attempts=7": ([(3, 3), (3, 3)], 7),
    "active-job:wait=polynomially_longer": ([(3, 3.15), (18, 20.4)], 5),
    "airflow": ([(300, 300), (300, 300)], 1),
    "airflow:retries=6,retry_exponential_backoff=2,max_retry_delay=1h": (
        [(300, 599), (600, 1199), (1200, 2399), (2400, 3600), (3600, 3600)],
        7,
    ),
    "airflow:retries=9,retry_delay=0s,retry_exponential_backoff=3": (
        [(1, 1), (1, 1), (1, 1)],
        10,
    ),
    "argo": ([(1, 1), (2, 2), (4, 4), (5, 5), (5, 5)], 11),
    "argo:factor=1,duration=2s,limit=3": ([(2, 2), (2, 2)], 4),
    "cloud-tasks": ([(0.1, 0.1), (0.2, 0.2), (0.4, 0.4), (0.8, 0.8)], 100),
    "cloud-tasks:min_backoff=1s,max_doublings=0,max_backoff=3s": (
        [(1, 1), (2, 2), (3, 3), (3, 3)],
        100,
    ),
    "dagster": ([(0, 0)], 2),
    "dagster:max_retries=4,delay=2s,backoff=exponential": (
        [(2, 2), (6, 6), (14, 14), (30, 30)],
        5,
    ),
    "dagster:max_retries=4,delay=2s,backoff=linear,jitter=full": (
        [(0, 2), (0, 4), (0, 6), (0, 8)],
        5,
    ),
    "dagster:max_retries=4,delay=2s,backoff=linear,jitter=plus_minus": (
        [(0, 4), (2, 6), (4, 8), (6, 10)],
        5,
    ),
    "dagster:max_retries=4,delay=2s,jitter=plus_minus": ([(0, 4), (0, 4)], 5),
    "oban": ([(17, 18), (19, 20), (23, 25), (31, 34)], 20),
    "oban:max_attempts=30": ([(17, 18), (17, 18), (19, 20), (23, 25), (23, 25)], 30),
    "prefect": ([(0, 0)], 1),
    "prefect:retries=3,exponential_backoff=5s": ([(5, 5), (10, 10), (20, 20)], 4),
    "step-functions": ([(1, 1), (2, 2), (4, 4)], 4),
    "step-functions:jitter_strategy=FULL,max_delay_seconds=3s": (
        [(0, 1), (0, 2), (0, 3), (0, 3)],
        4,
    ),
    "apt": ([(1, 1), (2, 2), (4, 4), (8, 8), (16, 16), (30, 30)], 4),
    "curl": ([(1, 1), (2, 2), (4, 4)], 8),
    "curl:retry=2,retry_delay=5s,retry_max_time=1m": ([(5, 5), (5, 5)], 3),
    "kubernetes": ([(0, 0), (10, 10), (20, 20), (40, 40)], None),
    "kubernetes:max_container_restart_period=5s": ([(0, 0), (5, 5), (5, 5)], None),
    "npm": ([(10, 10), (60, 60)], 3),
    "pip": ([(0, 0), (0.5, 0.5), (1, 1), (2, 2), (4, 4)], 6),
    "systemd": ([(0.1, 0.1), (0.1, 0.1)], None),
    "systemd:restart_sec=3s,restart_steps=2,restart_max_delay_sec=1s": (
        [(3, 3), (3, 3)],
        None,
    ),
    "systemd:restart_sec=2s,restart_steps=3,restart_max_delay_sec=16s,"
    "restart_randomized_delay_sec=4s": ([(2, 6), (4, 8), (8, 12), (16, 20)], None),
    "uv": ([(1, 2), (1, 4), (1, 8), (1, 16), (1, 30), (1, 30)], 4),
    "wget": ([(1, 1), (2, 2), (3, 3)], 20),
    "wget:tries=0,waitretry=2": ([(1, 1), (2, 2), (2, 2)], None),
    "undici": ([(0.5, 0.5), (1, 1), (2, 2), (4, 4), (8, 8), (16, 16), (30, 30)], 6),
}


@pytest.mark.parametrize(("text", "expected"), BOUNDS.items(), ids=BOUNDS)
def test_a_preset_has_the_delays_of_its_original(text, expected):
    bounds, attempts = expected
    policy = parse_preset(text)
    found = [policy.schedule.bounds(retry) for retry in range(1, len(bounds) + 1)]
    assert found == [pytest.approx(each) for each in bounds]
    assert policy.max_attempts == attempts


def test_a_preset_without_a_limit_of_attempts_has_none():
    assert parse_preset("active-job:attempts=unlimited").max_attempts is None


def test_a_task_of_cloud_tasks_is_given_up_after_both_limits():
    policy = presets.cloud_tasks(max_retry_duration="1h")
    assert (policy.max_elapsed, policy.limits) == (3600, "all")


def test_a_retry_of_argo_without_a_cap_grows_on():
    assert presets.argo(cap=None).schedule.bounds(10) == (512, 512)
