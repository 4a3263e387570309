"""Retries of SDK clients: their defaults, their settings, and how to switch them off.

Source, with a server that always answers 503: anthropic 2.14.0, openai 3.57.0, groq
1.7.0, cohere 7.3.1 and together 3.1.1 make three requests; elasticsearch 9.5.1 and
opensearch-py 3.2.0 four, without delays; azure-core 1.41.0 four; kubernetes 37.0.1
four, if connections fail; pymongo 4.20.1 two; langchain-openai 1.7.4 and
langchain-anthropic 1.7.10 three; ``stripe.Charge.create`` and the like of stripe 16.1.0
three, and its ``StripeClient`` one; ``litellm.completion`` of litellm 1.110.2 three.
"""

import math
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from retrykit.audit._arguments import Arguments, calls_of, count, error_names, seconds
from retrykit.audit._delays import NO_DELAYS, Delays
from retrykit.audit._libraries._reader import Readers
from retrykit.audit._sites import Behavior
from retrykit.audit._values import UNKNOWN, Call, Reference, Value, is_number

__all__ = ["OFF", "READERS", "WORDS", "read_langchain"]

_OPENAI_ERRORS: Final = (
    "APIConnectionError",
    "APITimeoutError",
    "RateLimitError",
    "InternalServerError",
    "ConflictError",
)


class _Client(NamedTuple):
    """The retries of some clients.

    Attributes:
        keyword: The keyword argument for the number of retries.
        retries: The default of that argument.
        delays: The delays before the retries.
        errors: The names of the errors that are retried.
    """

    keyword: str
    retries: int
    delays: Delays
    errors: tuple[str, ...]


_STAINLESS = Delays("exponential", 0.5, 2.0, 8.0, jitter=True, low=0.75)
_MODELS = _Client("max_retries", 2, _STAINLESS, _OPENAI_ERRORS)
_TOGETHER = _MODELS._replace(
    delays=Delays("exponential", 1.0, 2.0, 10.0, jitter=True, low=0.75)
)
_COHERE = _Client(
    "max_retries",
    2,
    Delays("exponential", 1.1, 2.0, 66.0, jitter=True, low=0.9 / 1.1),
    ("ApiError",),
)
_SEARCH = _Client(
    "max_retries", 3, NO_DELAYS, ("ConnectionError", "TransportError", "ApiError")
)
_STRIPE = _Client(
    "max_network_retries",
    0,
    Delays("exponential", 0.5, 2.0, 5.0, jitter=True, low=0.5),
    ("APIConnectionError", "StripeError"),
)


def _names(text: str) -> list[str]:
    """Return class names, each followed by the name of its async class."""
    return [each for name in text.split() for each in (name, f"Async{name}")]


_TABLE: Final[dict[str, dict[str, _Client]]] = {
    "openai": dict.fromkeys(_names("OpenAI AzureOpenAI BedrockOpenAI Client"), _MODELS),
    "anthropic": dict.fromkeys(
        _names(
            "Anthropic AnthropicAWS AnthropicBedrock AnthropicVertex AnthropicFoundry "
            "AnthropicBedrockMantle AnthropicGoogleCloud Client"
        ),
        _MODELS,
    ),
    "groq": dict.fromkeys(_names("Groq Client"), _MODELS),
    "together": dict.fromkeys(_names("Together Client"), _TOGETHER),
    "cohere": dict.fromkeys(_names("Client ClientV2"), _COHERE),
    "langchain_openai": dict.fromkeys(
        [
            "ChatOpenAI",
            "AzureChatOpenAI",
            "OpenAI",
            "AzureOpenAI",
            "OpenAIEmbeddings",
            "AzureOpenAIEmbeddings",
        ],
        _MODELS,
    ),
    "langchain_anthropic": {"ChatAnthropic": _MODELS},
    "elasticsearch": dict.fromkeys(_names("Elasticsearch"), _SEARCH),
    "opensearchpy": dict.fromkeys(_names("OpenSearch"), _SEARCH),
    "stripe": {"StripeClient": _STRIPE},
}


def _reader(client: _Client) -> Callable[[Call], Behavior]:
    def read(call: Call) -> Behavior:
        arguments = Arguments(call)
        given: Value = arguments.get(client.keyword, client.retries)
        # None is the default, too.
        calls = calls_of(client.retries if given is None else given)
        return Behavior(
            calls,
            math.inf,
            client.delays,
            client.errors,
            ending="raises",
            hint=None if client is _SEARCH else True,
            layer=calls in (None, 1.0) or client.keyword not in arguments,
        )

    return read


def _mongo(call: Call) -> Behavior:
    arguments = Arguments(call)
    both = [arguments.get(each, True) for each in ("retryReads", "retryWrites")]
    # Either kind of request may be repeated.
    calls: float | None = 1.0 if both == [False, False] else 2.0
    if UNKNOWN in both:
        calls = None
    return Behavior(calls, retried=_MONGO, ending="raises", layer=True)


_MONGO = ("AutoReconnect", "ConnectionFailure", "PyMongoError")
_AZURE = ("AzureError", "HttpResponseError", "ServiceRequestError")
_STRIPE_METHODS = frozenset(
    [
        "create",
        "retrieve",
        "list",
        "modify",
        "delete",
        "cancel",
        "capture",
        "confirm",
        "search",
        "update",
        "pay",
    ]
)


def _azure(call: Call) -> Behavior | None:
    """Return the behavior of an Azure client; None if it is given a policy."""
    arguments = Arguments(call)
    if arguments.get("retry_policy", None) is not None:
        return None
    total = arguments.get("retry_total", 10)
    status = arguments.get("retry_status", 3)
    calls = 1.0 + min(total, status) if is_number(total) and is_number(status) else None
    delays = Delays(
        "exponential",
        seconds(arguments.get("retry_backoff_factor", 0.8)),
        2.0,
        seconds(arguments.get("retry_backoff_max", 120)),
        at_once=1,
    )
    explicit = "retry_total" in arguments or "retry_status" in arguments
    return Behavior(
        calls,
        math.inf,
        delays,
        _AZURE,
        ending="raises",
        hint=True,
        layer=not explicit or calls in (None, 1.0),
    )


def _azure_named(call: Call) -> Behavior | None:
    name = call.function.last if type(call.function) is Reference else ""
    of_azure = name.endswith("Client") or name in ("RetryPolicy", "AsyncRetryPolicy")
    return _azure(call) if of_azure else None


def _kubernetes(call: Call) -> Behavior | None:
    name = call.function.last if type(call.function) is Reference else ""
    if name.endswith("Api") or name == "ApiClient":
        return Behavior(4.0, retried=("MaxRetryError",), ending="raises", layer=True)
    if name == "Configuration":
        given = Arguments(call).get("retries", None)
        if is_number(given) and given > 0:
            return Behavior(
                calls_of(given),
                math.inf,
                NO_DELAYS,
                ("MaxRetryError",),
                ending="raises",
            )
    return None


def _stripe_named(call: Call) -> Behavior | None:
    """Return the behavior of a call such as ``stripe.Charge.create()``, else None."""
    name = call.function.name if type(call.function) is Reference else ""
    _, _, method = name.partition(".")[2].partition(".")
    if method in _STRIPE_METHODS:
        return Behavior(3.0, retried=_STRIPE.errors, ending="raises", layer=True)
    return None


def _litellm(call: Call) -> Behavior:
    arguments = Arguments(call)
    own = arguments.get("max_retries", 2)
    more = arguments.get("num_retries", 0)
    given = [arguments.get(each, 0) for each in ("max_retries", "num_retries")]
    counts = [0 if each is None else each for each in (own, more)]
    calls = 1.0 + sum(counts) if all(map(is_number, counts)) else None
    return Behavior(
        calls,
        math.inf,
        retried=_OPENAI_ERRORS,
        ending="raises",
        layer=calls is None or not any(is_number(x) and x > 0 for x in given),
    )


def _litellm_router(call: Call) -> Behavior | None:
    retries = Arguments(call).get("num_retries", None)
    if not is_number(retries) or retries == 0:
        return None
    return Behavior(
        calls_of(retries), math.inf, retried=_OPENAI_ERRORS, ending="raises"
    )


def read_langchain(call: Call) -> Behavior:
    """Return the behavior of a LangChain runnable's ``with_retry(...)``."""
    arguments = Arguments(call)
    jitter = arguments.get("wait_exponential_jitter", True)
    errors = arguments.get("retry_if_exception_type", None)
    delays = Delays("exponential", 1.0, 2.0, jitter=True, added=1.0)
    if jitter is False:
        delays = NO_DELAYS
    elif jitter is not True or "exponential_jitter_params" in arguments:
        delays = Delays("exponential", jitter=None)
    return Behavior(
        count(arguments.get("stop_after_attempt", 3)),
        math.inf,
        delays,
        ("Exception",) if errors is None else error_names(errors),
        ending="raises",
    )


_LITELLM = ("completion", "acompletion", "embedding", "aembedding", "text_completion")

_OTHERS: dict[str, Readers] = {"stripe": {"*": _stripe_named}}

READERS: Final[Mapping[str, Readers]] = {
    **{
        library: {
            **{name: _reader(client) for name, client in clients.items()},
            **_OTHERS.get(library, {}),
        }
        for library, clients in _TABLE.items()
    },
    "pymongo": {"MongoClient": _mongo, "AsyncMongoClient": _mongo},
    "motor": {"AsyncIOMotorClient": _mongo},
    "azure": {"*": _azure_named},
    "kubernetes": {"*": _kubernetes},
    "litellm": {**dict.fromkeys(_LITELLM, _litellm), "Router": _litellm_router},
}
"""The readers, keyed by library and then by name; "*" stands for every other name."""

WORDS: Final = {
    "azure": frozenset(["retry_status", "retry_total"]),
    "kubernetes": frozenset(["retries"]),
    "pymongo": frozenset[str](),
    "motor": frozenset[str](),
    "stripe": frozenset(["StripeClient"]),
}
"""For libraries whose clients mostly retry by default, words that suggest a site."""

OFF: Final = {
    "openai": "OpenAI(max_retries=0)",
    "anthropic": "Anthropic(max_retries=0)",
    "groq": "Groq(max_retries=0)",
    "together": "Together(max_retries=0)",
    "cohere": "ClientV2(max_retries=0)",
    "langchain_openai": "ChatOpenAI(max_retries=0)",
    "langchain_anthropic": "ChatAnthropic(max_retries=0)",
    "litellm": "completion(max_retries=0, num_retries=0)",
    "elasticsearch": "Elasticsearch(max_retries=0)",
    "opensearchpy": "OpenSearch(max_retries=0)",
    "stripe": "stripe.max_network_retries = 0",
    "pymongo": "MongoClient(retryReads=False, retryWrites=False)",
    "motor": "AsyncIOMotorClient(retryReads=False, retryWrites=False)",
    "azure": "retry_total=0",
    "kubernetes": "configuration.retries = False",
    "redis": "Redis(retry=Retry(NoBackoff(), 0))",
    "botocore": 'Config(retries={"total_max_attempts": 1})',
    "urllib3": "Retry(0)",
    "requests": "HTTPAdapter(max_retries=0)",
    "httpx": "HTTPTransport(retries=0)",
    "httpx_retries": "httpx.HTTPTransport()",
    "aiohttp_retry": "aiohttp.ClientSession()",
    "google": "retry=None",
}
"""For each library, code that switches the retries of its clients off."""
OFF["boto3"] = OFF["aioboto3"] = OFF["aiobotocore"] = OFF["botocore"]
