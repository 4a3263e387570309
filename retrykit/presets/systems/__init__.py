"""The settings of real systems, each reproduced from its documentation.

The same functions are in `retrykit.presets`, where they return policies.
Nothing here knows how a file or a command line asks for them.
"""

from retrykit.presets.aws import aws_adaptive, aws_standard
from retrykit.presets.clients import finagle, grpc, polly, tenacity_default
from retrykit.presets.queues import celery, dramatiq, sidekiq, temporal
from retrykit.presets.reference import google, hostname_verification, zizq

__all__ = ["aws_adaptive", "aws_standard", "celery", "dramatiq", "finagle", "google"]
__all__ += ["grpc", "hostname_verification", "polly", "sidekiq", "temporal"]
__all__ += ["tenacity_default", "zizq"]
