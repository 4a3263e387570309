"""Loops that retry, written by hand."""

import asyncio
import time


def fetch(client, path):
    while True:
        try:
            return client.get(path)
        except Exception:  # noqa: BLE001  to be found
            time.sleep(1)


async def pay(client, order):
    for attempt in range(4):
        try:
            return await client.send(order)
        except ConnectionError:
            await asyncio.sleep(2**attempt)
    return None
