"""The code of the README runs, in the order in which it is read."""

import ast
import asyncio
import inspect
import re
from pathlib import Path

from retrykit.testing import virtual_time

README = (Path(__file__).parent.parent / "README.md").read_text("utf-8")


class Payload(bytes):
    """What a blocking client returns, and what an async one lets await."""

    __slots__ = ()

    def __await__(self):
        yield from ()
        return self


class Client:
    """A client that fails twice, and then gives its data."""

    def __init__(self):
        self.calls = 0

    def get(self, _url, *, timeout):
        assert timeout > 0
        return bytes(self.download())

    def download(self):
        self.calls += 1
        if self.calls % 3:
            raise TimeoutError("busy")
        return Payload(b"data")


def test_every_block_of_code_runs():
    client = Client()
    names = {"client": client, "download": client.download, "url": "/"}
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    with virtual_time():
        for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL):
            if "retrykit.integrations" in block:
                # See test_readme_integrations.py.
                continue
            code = compile(block, "README.md", "exec", flags=flags)
            result = eval(code, names)  # noqa: S307  that is what it is for
            if inspect.iscoroutine(result):
                asyncio.run(result)
    assert (client.calls, names["payload"]) == (6, b"data")
    names["test_fetch_waits_as_it_should"]()
    assert client.calls == 9
