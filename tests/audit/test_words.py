"""Which files are parsed: all that may have a site."""

import ast
import time

import pytest

from retrykit.audit._libraries import WORDS
from retrykit.audit._module_reader import read_module
from retrykit.audit._project import Project
from retrykit.audit._words import Interest

may_have_sites = Interest(WORDS)
LOOP = (
    "for x in range(3):\n    try:\n        f()\n        break\n  "
    "  except E:\n        pass\n"
)
SITES = {
    "decorator": "from tenacity import retry\n@retry\ndef f(): ...",
    "call": "import tenacity as t\nf = t.Retrying(stop=t.stop_after_attempt(3))(f)",
    "indented import": "def f():\n    import tenacity\n    return tenacity.Retrying()",
    "several": "import os, tenacity\nx = tenacity.AsyncRetrying()",
    "counted": LOOP,
    "tuple": LOOP.replace("range(3)", "(1, 2)"),
    "async": (
        "async def f():\n    async for x in range(3):\n        "
        "try:\n            g()\n"
        "            break\n        except E:\n            pass"
    ),
    "nested": f"class A:\n  def f(self):\n{LOOP.replace('f()', 'self.g()')}",
    "while": "while True:\n    try:\n        f()\n        break\n    except E:\n"
    "        time.sleep(1)\n",
    "form feed": f"\f{LOOP}",
    "followed": f"{LOOP}def g(): ...",
    "kubernetes": "from kubernetes.client import Configuration as C\nC(retries=3)",
    "azure": (
        "from azure.storage.blob import BlobClient\nBlobClient(u, retry_total=5)"
    ),
    "renamed": "from tenacity import Retrying as R\nR()",
    "stripe": "import stripe\nstripe.StripeClient('k', max_network_retries=2)",
}


def sites(text):
    tree = ast.parse(text)
    return [*Project([read_module(tree, "a.py", "a", "")]).sites()]


@pytest.mark.parametrize("name", SITES)
def test_a_file_with_a_site_is_parsed(name):
    text = SITES[name]
    if name == "nested":
        text = "class A:\n  def f(self):\n" + "".join(
            f"    {line}\n" for line in LOOP.splitlines()
        )
    assert sites(text)
    assert may_have_sites(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x = 1",
        "# retries of the attempt: retry after a backoff\nx = 1",
        "import tenacity",
        "retry = 1\nif retries == 3: pass".replace("retry = 1\n", ""),
        "for x in range(3):\n    f()\ntry:\n    g()\nexcept E:\n    pass",
        "while x:\n    try:\n        f()\n    except E:\n        return",
        (
            "def f():\n    for x in y:\n        pass\n\ndef g():\n    "
            "try:\n        pass\n"
            "    finally:\n        sleep(3)"
        ),
        "entries(3)",
        "def test_retry(self): ...",
        "async def load_retries(): ...\nclass RetryError(Exception): ...",
        "class C:\n def __init__(self, retry):\n  self._retry = retry\n",
        "class C:\n def f(self):\n  g(1, max_retries=self.max_retries)\n",
        (
            "from google.api_core.retry import Retry\n"
            "def f(retry: Retry | None = None) -> Retry:\n"
            "    g(\n        retry=retry,\n    )\n"
        ),
        "try:\n    for x in y: pass\nexcept E: pass",
        LOOP.replace("range(3)", "zip(a, b)"),
        LOOP.replace("        break\n", ""),
        LOOP.replace("range(3)", "x").replace("f()", "await f()"),
        # Clients that retry by themselves are not sites.
        "from kubernetes.client import CoreV1Api, Configuration\nCoreV1Api()",
        "from azure.storage.blob import BlobClient\nBlobClient(u)",
        "import stripe\nstripe.Charge.create()",
        "import pymongo\npymongo.MongoClient()",
    ],
)
def test_a_file_without_one_is_not(text):
    assert not sites(text)
    assert not may_have_sites(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        "@with_retry\ndef f(): ...",
        "MyRetry(3)",
        "f(max_retries=3)",
        "from .compat import again\nf = make_backoff (g)",
        "f(attempts=3)",
        "f(tries=3)",
        "import tenacity\ndef f():\n    return tenacity.Retrying",
        "f(retry=retries)",
        "f(retry=self.make_retry)",
        "self.retries = retries\nfor x in range(self.retries):\n    if f(): break",
        "f(retry=self.retry)\nself.retry = 3",
        "from .policies import retry as slow_retry\nf(slow_retry=slow_retry)",
        "from .policies import (\n    fast,\n    retry,  # slow\n)\nf(retry=retry)",
    ],
)
def test_a_file_that_may_use_what_another_defines_is_parsed(text):
    assert may_have_sites(text.encode())


SIZE = 100_000
HOSTILE = {
    "a long word": b"retry" * (SIZE // 5),
    "a long word of tries": b"tries" * (SIZE // 5),
    "spaces after a word": b"retry" + b" " * SIZE,
    "spaces in a decorator": b"retr\n@" + b" " * SIZE,
    "words in a decorator": b"retr\n@" + b"a " * (SIZE // 2),
    "words of an import": b"import " + b"a " * (SIZE // 2),
    "definitions": b"def retry(" * (SIZE // 10),
    "arguments": b"retry=retry," * (SIZE // 12),
    "lines of arguments": b"f(\n retry=retry,\n" + b" a\n" * (SIZE // 3),
    "a long argument": b"retry=retry" * (SIZE // 11),
    "names": b"retry=retry,\n" + b" " + b"a, " * (SIZE // 3),
    "imports": b"retry=retry,\n" + b"import " * (SIZE // 7),
    "a loop over many names": b"for x " + b"in " * (SIZE // 3) + b"\n try:\n  pass\n",
    "colons": b"for x in y\n try:\n  pass\n" + b":#" * (SIZE // 2),
    "deep loops": b"".join(b" " * each + b"for x in y:\n" for each in range(440))
    + b" " * 440
    + b"try:\n",
    "empty lines": b"for x in y:\n try:\n"
    + b" \n" * (SIZE // 2)
    + b"async"
    + b"\n" * SIZE,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_no_text_makes_the_search_slow(text):
    start = time.process_time()
    may_have_sites(text)
    # A search that is quadratic takes ten seconds or more.
    assert time.process_time() - start < 2
