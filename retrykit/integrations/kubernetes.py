"""Retries for the Kubernetes client.

Needs the extra ``kubernetes``. The client retries three times by itself, through
urllib3: switch that off, or each attempt is up to four requests::

    from kubernetes import client, config

    from retrykit import retry
    from retrykit.integrations import kubernetes as retries

    config.load_config()
    configuration = client.Configuration.get_default_copy()
    configuration.retries = False
    core = client.CoreV1Api(client.ApiClient(configuration))

    @retry(retries.policy(max_attempts=4))
    def pods(namespace):
        return core.list_namespaced_pod(namespace).items

A conflict (409) is permanent, since the same object conflicts again. A function that
reads the object again in every attempt may retry it::

    def is_retryable(error):
        conflict = isinstance(error, client.ApiException) and error.status == 409
        return conflict or retries.transient(error)

    @retry(retries.policy(on=is_retryable))
    def scale(name, replicas): ...
"""

from typing import Any, Final

from retrykit._internal.extras import needs
from retrykit._own_retries import OWN_RETRIES, OwnRetries
from retrykit.hints import Hint
from retrykit.integrations._http.policy import retry_after
from retrykit.integrations._transient import TransientErrors

with needs("kubernetes"):
    from kubernetes.client.exceptions import ApiException

    from retrykit.integrations.urllib3 import transient as _of_urllib3

__all__ = ["policy", "retry_after", "transient"]


class _Transient(TransientErrors):
    """Condition that matches transient errors of the Kubernetes client.

    They are responses with the status 429, 500, 502, 503 or 504, and transient errors
    of urllib3, but not a rejected certificate. A conflict (409) and a resource version
    that is too old (410) are permanent: read the object again, or list the objects
    again.

    Source:
        "API Conventions", section "HTTP Status codes", Kubernetes.
    """

    hint: Hint | None = retry_after
    own_retries: OwnRetries | None = OWN_RETRIES["kubernetes"]

    def __call__(self, error: Any, /) -> bool:
        if isinstance(error, ApiException):
            return error.status in _STATUSES
        return isinstance(error, Exception) and _of_urllib3(error)


_STATUSES = frozenset({429, 500, 502, 503, 504})

transient: Final = _Transient()
"""Condition for `on`: matches transient errors."""

policy: Final = transient.policy
"""Returns a policy with `transient` and `retry_after` filled in."""
