"""Policies of real systems, held against the originals.

Each preset is a function that returns a `Policy`; ``.replace()`` changes the settings
that the system leaves open. Every preset retries every `Exception`, and a limit that
the system does not have is None.

>>> zizq(retry_limit=3).replace(on=ConnectionError).max_attempts
4
"""

from typing import TYPE_CHECKING

from retrykit._internal.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from retrykit.presets._aws import (
        aws_adaptive,
        aws_dynamodb,
        aws_legacy,
        aws_sdk,
        aws_standard,
    )
    from retrykit.presets._clients import finagle, grpc, polly, tenacity_default
    from retrykit.presets._python_libraries import (
        aiohttp_retry,
        backoff_expo,
        google_api_core,
        httpx_retries,
        langchain,
        redis_py,
        requests,
        stamina,
        urllib3,
    )
    from retrykit.presets._python_queues import (
        dbos_step,
        huey,
        procrastinate,
        rq,
        taskiq,
    )
    from retrykit.presets._cloud import cloud_tasks, step_functions
    from retrykit.presets._javascript import (
        axios_retry,
        bullmq,
        got,
        ky,
        node_retry,
        p_retry,
        undici,
    )
    from retrykit.presets._programs import (
        apt,
        curl,
        kubernetes,
        npm,
        pip,
        systemd,
        uv,
        wget,
    )
    from retrykit.presets._python_libraries import stamina, urllib3
    from retrykit.presets._queues import celery, dramatiq, sidekiq, temporal, zizq
    from retrykit.presets._reference import google, hostname_verification
    from retrykit.presets._sdks import (
        anthropic,
        azure_core,
        azure_storage,
        client_go,
        elastic_transport,
        fern,
        google_genai,
        openai,
        pymongo,
        stainless,
        stripe,
    from retrykit.presets._workflows import (
        active_job,
        airflow,
        argo,
        dagster,
        oban,
        prefect,
    )
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "presets._reference": "google hostname_verification",
            "presets._python_libraries": "aiohttp_retry backoff_expo google_api_core "
            "httpx_retries langchain redis_py requests stamina urllib3",
            "presets._python_queues": "dbos_step huey procrastinate rq taskiq",
            "presets._aws": "aws_adaptive aws_dynamodb aws_legacy aws_sdk aws_standard",
            "presets._sdks": "anthropic azure_core azure_storage client_go "
            "elastic_transport fern google_genai openai pymongo stainless stripe",
            "presets._clients": "finagle grpc polly tenacity_default",
            "presets._javascript": (
                "axios_retry bullmq got ky node_retry p_retry undici"
            ),
            "presets._cloud": "cloud_tasks step_functions",
            "presets._workflows": "active_job airflow argo dagster oban prefect",
            "presets._programs": "apt curl kubernetes npm pip systemd uv wget",
            "presets._queues": "celery dramatiq sidekiq temporal zizq",
        },
    )

__all__ = ["aiohttp_retry", "anthropic", "aws_adaptive", "aws_dynamodb"]
__all__ += ["aws_legacy", "aws_sdk", "aws_standard", "azure_core", "azure_storage"]
__all__ += ["backoff_expo", "celery", "client_go", "dbos_step", "dramatiq"]
__all__ += ["elastic_transport", "fern", "finagle", "google", "google_api_core"]
__all__ += ["google_genai", "grpc", "hostname_verification", "httpx_retries", "huey"]
__all__ += ["langchain", "openai", "polly", "procrastinate", "pymongo", "redis_py"]
__all__ += ["requests", "rq", "sidekiq", "stainless", "stamina", "stripe", "taskiq"]
__all__ += ["temporal", "tenacity_default", "urllib3", "zizq"]
__all__ = ["axios_retry", "bullmq", "got", "ky", "node_retry", "p_retry", "undici"]
__all__ += ["active_job", "airflow", "argo", "cloud_tasks", "dagster", "oban"]
__all__ += ["prefect", "step_functions"]
__all__ += ["apt", "curl", "kubernetes", "npm", "pip", "systemd", "uv", "wget"]
__all__ += ["aws_adaptive", "aws_standard", "celery", "dramatiq", "finagle", "google"]
__all__ += ["grpc", "hostname_verification", "polly", "sidekiq", "temporal"]
__all__ += ["stamina", "tenacity_default", "urllib3", "zizq"]
