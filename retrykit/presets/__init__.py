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
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "presets._reference": "google hostname_verification",
            "presets._python_libraries": "stamina urllib3",
            "presets._aws": "aws_adaptive aws_dynamodb aws_legacy aws_sdk aws_standard",
            "presets._python_libraries": "aiohttp_retry backoff_expo google_api_core "
            "httpx_retries langchain redis_py requests stamina urllib3",
            "presets._python_queues": "dbos_step huey procrastinate rq taskiq",
            "presets._aws": "aws_adaptive aws_standard",
            "presets._clients": "finagle grpc polly tenacity_default",
            "presets._queues": "celery dramatiq sidekiq temporal zizq",
            "presets._sdks": "anthropic azure_core azure_storage client_go "
            "elastic_transport fern google_genai openai pymongo stainless stripe",
        },
    )

__all__ = ["anthropic", "aws_adaptive", "aws_dynamodb", "aws_legacy", "aws_sdk"]
__all__ += ["aws_standard", "azure_core", "azure_storage", "celery", "client_go"]
__all__ += ["dramatiq", "elastic_transport", "fern", "finagle", "google"]
__all__ += ["google_genai", "grpc", "hostname_verification", "openai", "polly"]
__all__ += ["pymongo", "sidekiq", "stainless", "stamina", "stripe", "temporal"]
__all__ += ["tenacity_default", "urllib3", "zizq"]
__all__ = ["aws_adaptive", "aws_standard", "celery", "dramatiq", "finagle", "google"]
__all__ += ["grpc", "hostname_verification", "polly", "sidekiq", "temporal"]
__all__ += ["stamina", "tenacity_default", "urllib3", "zizq"]
__all__ += ["aiohttp_retry", "backoff_expo", "google_api_core", "httpx_retries"]
__all__ += ["langchain", "redis_py", "requests"]
__all__ += ["dbos_step", "huey", "procrastinate", "rq", "taskiq"]
