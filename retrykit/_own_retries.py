"""The retries that libraries make by themselves, within each attempt.

Nothing is imported or changed: clients, and modules that have settings, are recognized
by name, and their settings are only read.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from operator import attrgetter
from sys import modules
from types import FrameType, ModuleType, TracebackType
from typing import Any, Final, final

from retrykit._internal.frozen import Frozen
from retrykit._internal.validation import invalid_setting, user_facing

__all__ = ["OWN_RETRIES", "Client", "OwnRetries", "find_clients", "find_failed_client"]


@final
class OwnRetries(Frozen):
    """The retries that a library makes by itself, within each attempt.

    >>> print(OWN_RETRIES["openai"])
    openai.OpenAI(max_retries=0)

    Attributes:
        text: The expression that switches the retries off.
        types: The full names of the classes or modules that have its settings; empty if
            none is known.
        read: A function that returns how many requests a client makes for one call or,
            as a float, for how many seconds it repeats them; None if no such function
            is known.
        copy: A function that returns a copy of a client without retries; None if the
            library has no such function.
    """

    __slots__ = ("copy", "read", "text", "types")
    text: str
    types: tuple[str, ...]
    read: Callable[[Any], float] | None
    copy: Callable[[Any], Any] | None

    def __init__(
        self,
        text: str,
        types: str = "",
        read: Callable[[Any], float] | None = None,
        copy: Callable[[Any], Any] | None = None,
    ) -> None:
        Frozen.__init__(self, text, tuple(types.split()), read, copy)

    def __str__(self) -> str:
        return self.text

    @property
    def library(self) -> str:
        """The top-level package of the library; empty without *types*."""
        return "".join(self.types[:1]).partition(".")[0]

    def count(self, client: Any) -> int | None:
        """Return how many requests a client makes for one call, at most.

        Returns:
            Count, >= 1, for a call that fails every time; None if that is unknown, or
            if only time limits it.
        """
        found = self._read(client)
        return None if found is None or type(found) is float else max(int(found), 1)

    def time_limit(self, client: Any) -> float | None:
        """Return for how long a client repeats a request, if only time limits it.

        Returns:
            Seconds, >= 0, or infinity; None if a count limits it, or nothing is known.
        """
        found = self._read(client)
        return found if type(found) is float else None

    def _read(self, client: Any) -> float | None:
        try:
            return None if self.read is None else self.read(client)
        except Exception:  # noqa: BLE001  another version keeps it elsewhere
            return None

    @user_facing
    def off(self, client: Any) -> Any:
        """Return a copy of a client; the copy does not retry by itself.

        Raises:
            ConfigError: The library can switch retries off only where the client is
                made.
        """
        if self.copy is None:
            rule, suggestion = "one that can be copied", f"make it with {self.text}"
            raise invalid_setting(
                "client", rule, type(client), suggestion, code="other-library"
            )
        return self.copy(client)


def _generated(client: Any) -> int:
    retries: int = client.max_retries
    return retries + 1


def _without_retries(client: Any) -> Any:
    return client.with_options(max_retries=0)


def _botocore(client: Any) -> int:
    settings = client.meta.config.retries or {}
    attempts: int | None = settings.get("total_max_attempts")
    if attempts is not None:
        return attempts
    dynamodb = client.meta.service_model.service_name.startswith("dynamodb")
    if settings.get("mode", "legacy") == "legacy":
        return 10 if dynamodb else 5
    return 4 if dynamodb else 3


def _azure(client: Any) -> int:
    policies = attrgetter("_pipeline._impl_policies")(client)
    [policy] = (each for each in policies if hasattr(each, "total_retries"))
    return 1 + int(min(policy.total_retries, policy.status_retries))


def _stripe(client: Any) -> int:
    if isinstance(client, ModuleType):
        return 1 + int(client.max_network_retries)
    return 1 + int(attrgetter("_options.max_network_retries")(client) or 0)


def _redis(client: Any) -> int:
    retry = client.connection_pool.connection_kwargs["retry"]
    return 1 + int(attrgetter("_retries")(retry))


def _pymongo(client: Any) -> float:
    options = client.options
    if not (options.retry_reads or options.retry_writes):
        return 1
    # With timeoutMS, it retries until then.
    limit = getattr(options, "timeout", None)
    return float(limit) if limit else 2


def _google(retry: Any) -> float:
    limit: float | None = attrgetter("_timeout")(retry)
    return math.inf if limit is None else float(limit)


def _of_urllib3(retries: Any) -> int:
    if retries is None:
        # Retry.DEFAULT.
        return 4
    if isinstance(retries, int):
        return 1 + int(retries)
    return 1 + int(retries.total or 0)


def _urllib3(pools: Any) -> int:
    return _of_urllib3(pools.connection_pool_kw.get("retries"))


def _requests(session: Any) -> int:
    # An adapter of another library may have none.
    adapters = session.adapters.values()
    return max(_of_urllib3(getattr(each, "max_retries", 0)) for each in adapters)


def _kubernetes(client: Any) -> int:
    return _urllib3(client.rest_client.pool_manager)


def _cohere(client: Any) -> int:
    return 1 + int(attrgetter("_client_wrapper._max_retries")(client))


def _litellm(module: Any) -> int:
    # Its own retries follow those of the OpenAI SDK, and make one request each.
    return 1 + int(module.DEFAULT_MAX_RETRIES) + int(module.num_retries or 0)


def _elastic(client: Any) -> int:
    retries: int = client.transport.max_retries
    return retries + 1


OWN_RETRIES: Final = {
    "openai": OwnRetries(
        "openai.OpenAI(max_retries=0)",
        "openai._base_client.BaseClient",
        _generated,
        _without_retries,
    ),
    "anthropic": OwnRetries(
        "anthropic.Anthropic(max_retries=0)",
        "anthropic._base_client.BaseClient",
        _generated,
        _without_retries,
    ),
    "botocore": OwnRetries(
        'Config(retries={"total_max_attempts": 1})',
        "botocore.client.BaseClient",
        _botocore,
    ),
    "azure": OwnRetries(
        "retry_total=0",
        "azure.core._pipeline_client.PipelineClient "
        "azure.core._pipeline_client_async.AsyncPipelineClient",
        _azure,
    ),
    "google-api-core": OwnRetries(
        "retry=None",
        "google.api_core.retry.retry_base._BaseRetry",
        _google,
    ),
    "google-genai": OwnRetries(
        'genai.Client(http_options={"retry_options": {"attempts": 1}})'
    ),
    "kubernetes": OwnRetries(
        "configuration.retries = False",
        "kubernetes.client.api_client.ApiClient",
        _kubernetes,
    ),
    "stripe": OwnRetries(
        "stripe.max_network_retries = 0",
        "stripe stripe._api_requestor._APIRequestor",
        _stripe,
    ),
    "redis": OwnRetries(
        "redis.Redis(retry=Retry(NoBackoff(), 0))",
        "redis.client.Redis redis.asyncio.client.Redis",
        _redis,
    ),
    "pymongo": OwnRetries(
        "MongoClient(retryReads=False, retryWrites=False)",
        "pymongo.synchronous.mongo_client.MongoClient "
        "pymongo.asynchronous.mongo_client.AsyncMongoClient",
        _pymongo,
    ),
    "groq": OwnRetries(
        "groq.Groq(max_retries=0)",
        "groq._base_client.BaseClient",
        _generated,
        _without_retries,
    ),
    "together": OwnRetries(
        "together.Together(max_retries=0)",
        "together._base_client.BaseClient",
        _generated,
        _without_retries,
    ),
    "urllib3": OwnRetries(
        "urllib3.PoolManager(retries=False)",
        "urllib3.poolmanager.PoolManager",
        _urllib3,
    ),
    "requests": OwnRetries(
        'session.mount("https://", HTTPAdapter(max_retries=0))',
        "requests.sessions.Session",
        _requests,
    ),
    "elasticsearch": OwnRetries(
        "Elasticsearch(max_retries=0)",
        "elasticsearch._sync.client._base.BaseClient "
        "elasticsearch._async.client._base.BaseClient",
        _elastic,
    ),
    "cohere": OwnRetries(
        "cohere.ClientV2(max_retries=0)",
        "cohere.base_client.BaseCohere cohere.base_client.AsyncBaseCohere",
        _cohere,
    ),
    "litellm": OwnRetries("litellm.completion(max_retries=0)", "litellm", _litellm),
    "azure-storage": OwnRetries(
        "BlobServiceClient(retry_total=0)",
        " ".join(
            f"azure.storage.{each}._shared.base_client.StorageAccountHostsMixin"
            for each in ("blob", "fileshare", "filedatalake", "queue")
        ),
        _azure,
    ),
}
"""The retries that libraries make by themselves, keyed by library name."""

_KNOWN: Final = {name: each for each in OWN_RETRIES.values() for name in each.types}

_OF_GOOGLE: Final = OWN_RETRIES["google-api-core"]
_UNKNOWN: Final = OwnRetries("")
# Each request may have retries of its own.
_OF_URLLIB3: Final = OWN_RETRIES["urllib3"]


Client = tuple[str, OwnRetries, object]
"""The name of a client's class or module, its library's retries, and the client."""


def find_clients(objects: Iterable[object]) -> Iterator[Client]:
    """Yield the clients of known libraries among objects and in their attributes.

    Yields:
        Each client once. The clients of `retrykit.integrations` are left out, and so
        are the retries of Google Cloud's methods, which a call may switch off.
    """
    seen = set()
    for each in objects:
        if type(each).__module__.startswith("retrykit."):
            # A client of an integration, whose retries are those of a policy.
            continue
        for part in (each, *_attributes(each)):
            found = _own_retries(part)
            # A method may be called without the retries that its client has for it.
            per_call = found is not None and found[1] is _OF_GOOGLE
            if found is not None and not per_call and id(part) not in seen:
                seen.add(id(part))
                yield *found, part


def find_failed_client(error: BaseException | None) -> Client | None:
    """Return the known client whose code raised an error or one of its first causes.

    It is the outermost known client whose methods the error passed through. In each
    traceback, the search ends at a retried function or an integration's client, which
    makes its own search.

    Returns:
        The client; None if no known one is found. For Google Cloud, whose methods have
        the retries, it is the client's name with the retries of the method.
    """
    for _ in range(_MOST_CAUSES):
        if error is not None:
            found = _find_in_frames(error.__traceback__)
            if found is not None:
                return found
            error = error.__cause__
    return None


# More than any SDK has.
_MOST_CAUSES: Final = 5
_MOST_FRAMES: Final = 100


def _find_in_frames(trace: TracebackType | None) -> Client | None:
    caller, is_inside = None, False
    for frame in islice(_frames(trace), _MOST_FRAMES):
        package = str(frame.f_globals.get("__name__")).partition(".")[0]
        if package == "retrykit":
            if is_inside:
                return None
            continue
        is_inside = True
        # The settings of litellm are in its module, and it makes clients of others.
        is_module = package == "litellm"
        self: object = modules.get(package) if is_module else _self_of(frame)
        module = type(self).__module__
        for part in (self, *_attributes(self)):
            name, own = _own_retries(part) or ("", _UNKNOWN)
            if part is self and own is _OF_GOOGLE:
                # It is not a client, but was called by one.
                return caller or name, own, part
            # A client of another library may have nothing to do with this error.
            is_near = part is self or own.library == module.partition(".")[0]
            if is_near and own not in (_UNKNOWN, _OF_GOOGLE, _OF_URLLIB3):
                return name, own, part
        if caller is None and module.startswith("google.cloud."):
            caller = _name_of(self)
    return None


def _frames(trace: TracebackType | None) -> Iterator[FrameType]:
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next


def _self_of(frame: FrameType) -> object:
    """Return the ``self`` of the method that runs in a frame; None without one.

    A nested function counts if it uses the ``self`` of its method.
    """
    code = frame.f_code
    # Only then, since ``f_locals`` may copy many variables.
    if "self" in code.co_varnames[: min(code.co_argcount, 1)] + code.co_freevars:
        return frame.f_locals.get("self")
    return None


def _attributes(value: object) -> list[object]:
    """Return the values in an object's ``__dict__``; none for modules and classes."""
    if isinstance(value, ModuleType | type):
        return []
    try:
        return [*object.__getattribute__(value, "__dict__").values()]
    except Exception:  # noqa: BLE001  it has none, or lends those of another object
        return []


def _own_retries(value: object) -> tuple[str, OwnRetries] | None:
    # By type(), since proxies pretend to have the class of their object.
    if isinstance(value, ModuleType):
        name = value.__name__
        return (name, _KNOWN[name]) if name in _KNOWN else None
    for kind in type(value).__mro__:
        known = _KNOWN.get(f"{kind.__module__}.{kind.__qualname__}")
        if known is not None:
            return _name_of(value), known
    return None


def _name_of(value: object) -> str:
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    return ".".join(part for part in name.split(".") if part[:1] != "_")
