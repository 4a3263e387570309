"""The RPC clients and retry libraries."""

from tests.originals.comparison import documented, failing, original, without_sleep

documented("finagle", "`RetryPolicy` and `Backoff`, API documentation of Finagle")
documented("grpc", 'gRFC A6, "gRPC Retry Design", as revised in 2024')
documented(
    "polly",
    '"Wait and Retry with Jittered Back-off", documentation of'
    " Polly.Contrib.WaitAndRetry",
)


@original("tenacity-default", package="tenacity", how="a run")
def tenacity_waits() -> list[float]:
    import tenacity

    with without_sleep("tenacity.nap") as waits:
        tenacity.retry(failing(OSError))()
    return waits
