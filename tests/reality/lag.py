"""Lag of an event loop: how late its timers are."""

import asyncio
import time

__all__ = ["measure_lag", "p99"]

EVERY = 0.02


async def measure_lag(lags: list[float]) -> None:
    """Append how late a timer is, in seconds, 50 times a second."""
    while True:
        begun = time.monotonic()
        await asyncio.sleep(EVERY)
        lags.append(time.monotonic() - begun - EVERY)


def p99(lags: list[float]) -> float:
    """Return the 99th percentile."""
    return sorted(lags)[len(lags) * 99 // 100]
