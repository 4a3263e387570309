"""The programs."""

from collections.abc import Iterator

from tests.originals.comparison import documented, original, run_by_hand
from tests.originals.javascript import register

# They would have to wait, or cannot run here.
run_by_hand("apt", "APT 2.6")
run_by_hand("curl", "curl 7.88.1, and the code of 8.22")
documented("kubernetes", "`doBackOff`, Kubernetes 1.34")
documented("systemd", "`service_restart_usec_next`, systemd 262")
run_by_hand("uv", "uv 0.13.9")
run_by_hand("wget", "wget 1.21.3")

register(
    "npm/node_modules/@npmcli/config/lib/definitions/index.js",
    """
    const { promiseRetry } =
      await load("npm/node_modules/@gar/promise-retry/lib/index.js");
    const { retry } = original.flatten({ ...original.defaults, ...settings });
    const call = () => promiseRetry((again) => again(new Error()), retry);
    """,
    {"fetch_retries": 9, "fetch_retry_factor": 1.7, "fetch_retry_mintimeout": 0.3},
    spell=lambda name: name.replace("_", "-"),
    how="its function and its defaults",
)


@original("pip", {"retries": 9})
def pip_waits(*, retries: int = 5) -> Iterator[float]:
    from pip._internal.network.session import PipSession
    from pip._vendor.urllib3.exceptions import MaxRetryError

    retry = PipSession(retries=retries).get_adapter("https://localhost/").max_retries
    while True:
        try:
            retry = retry.increment("GET", "/", error=OSError())
        except (MaxRetryError, OSError):
            return
        yield retry.get_backoff_time()
