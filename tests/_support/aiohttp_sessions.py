"""aiohttp sessions with the retry middleware, and single requests."""

import asyncio

import aiohttp
import pytest

from retrykit import state_of, testing
from retrykit.integrations.aiohttp import RetryMiddleware

__all__ = ["fetch", "fetch_error", "session", "virtual_time"]


def virtual_time(stall_timeout=0.05):
    """Return virtual time that waits only briefly for idle connections."""
    return testing.virtual_time(stall_timeout=stall_timeout)


def session(*inner, **settings):
    """Return a session of one connection: it hangs if that is not released.

    Settings are parameters of the session if they are named so, else of the policy.
    """
    names = {"raise_for_status", "timeout", "trace_configs"}
    own = {name: settings.pop(name) for name in names & settings.keys()}
    waits = {"schedule": [1, 2, 4], "max_attempts": 3}
    return aiohttp.ClientSession(
        middlewares=[RetryMiddleware(**waits | settings), *inner],
        connector=aiohttp.TCPConnector(limit=1),
        **own,
    )


def fetch(url, method="GET", *inner, data=None, headers=None, **settings):
    """Return the status, the body, the state and the sleeps of a request."""

    async def main():
        with virtual_time() as clock:
            async with (
                session(*inner, **settings) as client,
                client.request(method, url, data=data, headers=headers) as response,
            ):
                body = await response.read()
                return response.status, body, state_of(response), clock.sleeps

    return asyncio.run(main())


def fetch_error(url, method="GET", *inner, data=None, kind=Exception, **settings):
    """Return the error and the sleeps of a request."""

    async def main():
        with virtual_time() as clock, pytest.raises(kind) as caught:
            async with session(*inner, **settings) as client:
                await client.request(method, url, data=data)
        return caught.value, clock.sleeps

    return asyncio.run(main())
