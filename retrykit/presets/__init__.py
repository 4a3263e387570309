"""Policies of real systems, each reproduced from its documentation.

Each preset is a function that returns a `Policy`; ``.replace()`` changes the settings
that the system leaves open. Every preset retries every `Exception`, and a limit that
the system does not have is None.

>>> zizq(retry_limit=3).replace(on=ConnectionError).max_attempts
4
"""

from retrykit.presets._aws import aws_adaptive, aws_standard
from retrykit.presets._clients import finagle, grpc, polly, tenacity_default
from retrykit.presets._queues import celery, dramatiq, sidekiq, temporal, zizq
from retrykit.presets._reference import google, hostname_verification

__all__ = ["aws_adaptive", "aws_standard", "celery", "dramatiq", "finagle", "google"]
__all__ += ["grpc", "hostname_verification", "polly", "sidekiq", "temporal"]
__all__ += ["tenacity_default", "zizq"]
