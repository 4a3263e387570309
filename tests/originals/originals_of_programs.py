"""The programs."""

from collections.abc import Iterator

from tests.originals.comparison import documented, original
from tests.originals.javascript import register

# They would have to wait, or cannot run here.
documented("apt", "a run of APT 2.6.1")
documented("curl", "the code of curl 8.22, and runs of curl 7.88.1")
documented("kubernetes", "`doBackOff`, Kubernetes 1.34")
documented("systemd", "`service_restart_usec_next`, systemd 262")
documented("uv", "`retry_policy`, and runs of uv 0.13.9")
documented("wget", "a run of wget 1.21.3")

register(
    "npm",
    "npm",
    """
    const { default: found } =
      await load("npm/node_modules/@npmcli/config/lib/definitions/index.js");
    const { default: { promiseRetry } } =
      await load("npm/node_modules/@gar/promise-retry/lib/index.js");
    const config = (name) =>
      settings[name.replace(/-./g, (found) => found[1].toUpperCase())] ??
      found.definitions[name].default;
    const options = {
      retries: config("fetch-retries"),
      factor: config("fetch-retry-factor"),
      minTimeout: config("fetch-retry-mintimeout"),
      maxTimeout: config("fetch-retry-maxtimeout"),
    };
    const fail = (again) => again(new Error());
    const call = () => promiseRetry(fail, options).catch(() => {});
    """,
    {"fetch_retries": 9, "fetch_retry_factor": 1.7, "fetch_retry_mintimeout": 0.3},
    in_seconds=("fetch_retry_mintimeout", "fetch_retry_maxtimeout"),
    how="its function and its defaults",
)


@original("pip", "pip", {"retries": 9})
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
