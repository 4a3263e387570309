"""The real SDK of Sentry, with a transport that keeps the events."""

import pytest
import sentry_sdk
from sentry_sdk.integrations.dedupe import DedupeIntegration
from sentry_sdk.integrations.logging import LoggingIntegration
from sentry_sdk.integrations.starlette import StarletteIntegration
from sentry_sdk.transport import Transport

from retrykit import observe
from retrykit.integrations.sentry import observer

__all__ = ["Memory", "initialize", "sent"]

DSN = "http://key@127.0.0.1:1/7"


class Memory(Transport):
    """Keeps the events that it should send."""

    def __init__(self):
        super().__init__()
        self.events = []

    def capture_envelope(self, envelope):
        self.events.append(envelope.get_event())


@pytest.fixture
def initialize():
    """Return a function that initializes the SDK, as in an application."""
    # Not all of them: they patch the standard library.
    chosen = [DedupeIntegration(), LoggingIntegration(), StarletteIntegration()]

    def initialize(transport=None, dsn=DSN, **options):
        sentry_sdk.init(
            dsn,
            transport=transport,
            default_integrations=False,
            auto_enabling_integrations=False,
            integrations=chosen,
            **options,
        )
        return transport

    with sentry_sdk.isolation_scope():
        yield initialize
        sentry_sdk.get_client().close(timeout=0)
        sentry_sdk.Scope.get_global_scope().set_client(None)


@pytest.fixture
def sent(initialize):
    """Return the events that were sent so far, while every call is observed."""
    with observe(observer(), failures_only=True):
        yield initialize(Memory()).events
