"""Libraries that retry, and the meaning of their calls."""

from collections.abc import Mapping
from typing import Final

from retrykit.audit._libraries import (
    aiohttp_retry,
    backoff,
    botocore,
    celery,
    clients,
    google,
    httpx,
    opnieuw,
    redis,
    retry,
    retrying,
    retrykit,
    stamina,
    tenacity,
    urllib3,
)
from retrykit.audit._libraries._reader import Reader, Readers
from retrykit.audit._sites import Behavior
from retrykit.audit._values import Call, Operation, Reference, Value

__all__ = ["BY_KEYWORD", "LIBRARIES", "METHODS", "RETRIERS", "WORDS", "behavior_of"]

LIBRARIES: Final[Mapping[str, Readers]] = {
    "tenacity": tenacity.READERS,
    "backoff": backoff.READERS,
    "stamina": stamina.READERS,
    "retrying": retrying.READERS,
    "retry": retry.READERS,
    "urllib3": urllib3.READERS,
    "requests": urllib3.READERS,
    "httpx": httpx.READERS,
    "httpx_retries": httpx.READERS_OF_RETRIES,
    "aiohttp_retry": aiohttp_retry.READERS,
    "google": google.READERS,
    "opnieuw": opnieuw.READERS,
    "retryhttp": opnieuw.READERS_OF_RETRYHTTP,
    "redis": redis.READERS,
    "botocore": botocore.READERS,
    "boto3": botocore.READERS,
    "aioboto3": botocore.READERS,
    "aiobotocore": botocore.READERS,
    "celery": celery.READERS,
    "retrykit": retrykit.READERS,
    **clients.READERS,
}
"""For each library, the readers of its functions and classes that retry.

Readers are keyed by name, without the module; "*" stands for every other name.
"""

METHODS: Final[Mapping[str, Readers]] = {
    "celery": celery.METHODS,
    "retrykit": retrykit.METHODS,
    **dict.fromkeys(("boto3", "aioboto3", "botocore", "aiobotocore"), botocore.METHODS),
}
"""For each library, the readers of methods that retry, or that set up retries."""

WORDS: Final[Mapping[str, frozenset[str]]] = {
    library: frozenset([*names, *METHODS.get(library, ())])
    for library, names in LIBRARIES.items()
} | clients.WORDS
"""For each library, words that mark its sites; a file without any of them has none.

A client that retries by itself is not a site; it is found if a site calls it.
"""

RETRIERS: Final = frozenset(
    [
        "tenacity",
        "backoff",
        "stamina",
        "retrying",
        "retry",
        "opnieuw",
        "retryhttp",
        "retrykit",
        "google",
        "celery",
        "langchain_core",
    ]
)
"""The libraries that retry a given function; the others have clients that retry."""

BY_KEYWORD: Final[dict[str, tuple[str, Reader]]] = {
    # Whatever the name of the application.
    "autoretry_for": ("celery", celery.METHODS["task"]),
    "wait_exponential_jitter": ("langchain_core", clients.read_langchain),
}
"""The library and the reader for each keyword argument that only retries use."""


def behavior_of(call: Call) -> tuple[str, Behavior] | None:
    """Return the library and behavior of a call; None if there is none to report.

    Args:
        call: A call whose references have been resolved.
    """
    function = call.function
    library, reader = "", None
    if type(function) is Reference and "." in function.name:
        library = function.library
        readers = LIBRARIES.get(library, {})
        reader = readers.get(function.last) or readers.get("*")
    elif type(function) is Operation and function.sign == ".":
        library = maker_of(function.left)
        reader = METHODS.get(library, {}).get(function.right)
        other = library and not library.startswith("langchain") and not call.named
        if reader is None and function.right == "with_retry" and not other:
            library, reader = "langchain_core", clients.read_langchain
    if reader is None:
        for name, _ in call.named:
            if name in BY_KEYWORD:
                library, reader = BY_KEYWORD[name]
    found = None if reader is None else reader(call)
    return None if found is None else (library, found)


def maker_of(value: Value) -> str:
    """Return the library whose call made an object or its owner; "" without one."""
    while type(value) is Operation and value.sign == ".":
        value = value.left
    if type(value) is Call:
        function = value.function
        if type(function) is Reference:
            return function.library
        return maker_of(function)
    return ""
