"""The RPC clients and retry libraries."""

from contextlib import suppress

from tests.originals.comparison import RETRIES, documented, original

documented("finagle", "`RetryPolicy` and `Backoff`, API documentation of Finagle")
documented("grpc", 'gRFC A6, "gRPC Retry Design", as revised in 2024')
documented("polly", '"Wait and Retry with Jittered Back-off", documentation of Polly')


@original("tenacity-default", "tenacity", how="a run")
def tenacity_waits() -> list[float]:
    import tenacity

    waits: list[float] = []

    def follow(wait: float) -> None:
        waits.append(wait)
        if len(waits) == RETRIES:
            # It is endless.
            raise StopIteration

    def fail() -> None:
        raise OSError

    with suppress(StopIteration):
        tenacity.retry(sleep=follow)(fail)()
    return waits
