"""Policies of real systems, compared with the originals.

Each preset is a function that returns a `Policy`; ``.replace()`` changes the settings
that the system leaves open. The presets of job queues, workflow engines and restarts
retry every `Exception`, as does `tenacity_default`; the others have the default `on` of
`Policy`. A limit that the system does not have is None.

>>> zizq(retry_limit=3).replace(on=ConnectionError).max_attempts
4
"""

from typing import TYPE_CHECKING

from retrykit._internal.late_modules import lazy_exports

if TYPE_CHECKING:
    from retrykit.presets._aws import (
        aws_adaptive,
        aws_dynamodb,
        aws_legacy,
        aws_sdk,
        aws_standard,
    )
    from retrykit.presets._clients import finagle, grpc, polly, tenacity_default
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
    )
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
            "presets._javascript": "axios_retry bullmq got ky node_retry p_retry "
            "undici",
            "presets._aws": "aws_adaptive aws_dynamodb aws_legacy aws_sdk aws_standard",
            "presets._sdks": "anthropic azure_core azure_storage client_go "
            "elastic_transport fern google_genai openai pymongo stainless stripe",
            "presets._clients": "finagle grpc polly tenacity_default",
            "presets._queues": "celery dramatiq sidekiq temporal zizq",
            "presets._workflows": "active_job airflow argo dagster oban prefect",
            "presets._cloud": "cloud_tasks step_functions",
            "presets._programs": "apt curl kubernetes npm pip systemd uv wget",
        },
    )

__all__ = ["active_job", "aiohttp_retry", "airflow", "anthropic", "apt", "argo"]
__all__ += ["aws_adaptive", "aws_dynamodb", "aws_legacy", "aws_sdk", "aws_standard"]
__all__ += ["axios_retry", "azure_core", "azure_storage", "backoff_expo", "bullmq"]
__all__ += ["celery", "client_go", "cloud_tasks", "curl", "dagster", "dbos_step"]
__all__ += ["dramatiq", "elastic_transport", "fern", "finagle", "google"]
__all__ += ["google_api_core", "google_genai", "got", "grpc", "hostname_verification"]
__all__ += ["httpx_retries", "huey", "kubernetes", "ky", "langchain", "node_retry"]
__all__ += ["npm", "oban", "openai", "p_retry", "pip", "polly", "prefect"]
__all__ += ["procrastinate", "pymongo", "redis_py", "requests", "rq", "sidekiq"]
__all__ += ["stainless", "stamina", "step_functions", "stripe", "systemd", "taskiq"]
__all__ += ["temporal", "tenacity_default", "undici", "urllib3", "uv", "wget", "zizq"]
