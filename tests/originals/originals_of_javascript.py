"""The libraries that retry, in JavaScript."""

from tests.originals.javascript import register

register(
    "axios-retry",
    "axios-retry",
    """
    const { default: axios, AxiosError } = await load("axios/index.js");
    const { default: retry, exponentialDelay, linearDelay } =
      await load("axios-retry/dist/esm/index.js");
    const { retryDelay, delayFactor = 100, ...options } = settings;
    if (retryDelay === "exponential")
      options.retryDelay = (n, error) => exponentialDelay(n, error, delayFactor);
    if (retryDelay === "linear") options.retryDelay = linearDelay(delayFactor);
    const fail = (config) =>
      Promise.reject(new AxiosError("lost", "ECONNRESET", config));
    const client = axios.create({ adapter: fail });
    retry(client, options);
    const call = () => client.get("http://localhost/").catch(() => {});
    """,
    {"retry_delay": "exponential", "retries": 6},
    {"retry_delay": "exponential", "delay_factor": 0.5},
    {"retry_delay": "linear", "delay_factor": 0.25},
    in_seconds=("delay_factor",),
    how="a run",
)

register(
    "bullmq",
    "bullmq",
    """
    const { Backoffs } = await load("bullmq/dist/esm/classes/backoffs.js");
    const { attempts = 3, ...options } = settings;
    const backoff = { type: "exponential", delay: 1000, ...options };
    const call = () => {
      for (let made = 1; made < attempts; made++)
        waits.push(Backoffs.calculate(backoff, made));
    };
    """,
    {"attempts": 8, "jitter": 0.5},
    {"attempts": 5, "type": "fixed", "jitter": 1, "delay": 0.25},
    {"type": "fixed", "delay": 2},
    in_seconds=("delay",),
)

register(
    "got",
    "got",
    """
    const { default: delayOf } =
      await load("got/dist/source/core/calculate-retry-delay.js");
    const { default: Options } = await load("got/dist/source/core/options.js");
    const retryOptions = new Options({ retry: settings }).retry;
    const error = { code: "ECONNRESET", options: { method: "GET" } };
    const call = () => {
      for (let attemptCount = 1; ; attemptCount++) {
        const delay = delayOf({ attemptCount, retryOptions, error });
        if (!delay || delay > 2_147_483_647) return;
        waits.push(delay);
      }
    };
    """,
    {"limit": 6, "backoff_limit": 5, "noise": 0.05},
    {"limit": 4, "backoff_limit": 0},
    {"limit": 8, "noise": 0},
    in_seconds=("backoff_limit", "noise"),
)

register(
    "ky",
    "ky",
    """
    const { default: ky } = await load("ky/distribution/index.js");
    const fetch = () => Promise.reject(new TypeError("fetch failed"));
    const options = { retry: settings, timeout: false, fetch };
    const call = () => ky("http://localhost/", options).catch(() => {});
    """,
    {"limit": 6, "backoff_limit": 2},
    {"limit": 5, "jitter": True, "backoff_limit": 1},
    in_seconds=("backoff_limit",),
    how="a run",
)

register(
    "node-retry",
    "retry",
    """
    const { default: retry } = await load("retry/index.js");
    const call = () => { waits = retry.timeouts(settings); };
    """,
    {"randomize": True},
    {"randomize": True, "factor": 3, "min_timeout": 0.0125, "max_timeout": 0.5},
    {"factor": 1.37, "min_timeout": 0.05, "max_timeout": 0.2, "retries": 12},
    {"min_timeout": 0, "retries": 3},
    in_seconds=("min_timeout", "max_timeout"),
)

register(
    "p-retry",
    "p-retry",
    """
    const { default: pRetry } = await load("p-retry/index.js");
    const fail = () => Promise.reject(new Error());
    const call = () => pRetry(fail, settings).catch(() => {});
    """,
    {"randomize": True, "factor": 1.2},
    {"randomize": True, "factor": 3, "min_timeout": 0.0125, "max_timeout": 0.5005},
    {"factor": 1.37, "min_timeout": 0.05, "max_timeout": 0.2, "retries": 12},
    in_seconds=("min_timeout", "max_timeout"),
    how="a run",
)

register(
    "undici",
    "undici",
    """
    const { default: RetryHandler } = await load("undici/lib/handler/retry-handler.js");
    const symbols = await load("undici/lib/core/symbols.js");
    const retryOptions = settings;
    const { retryOpts } = new RetryHandler({ retryOptions }, {});
    const decide = RetryHandler[symbols.default.kRetryHandlerDefaultRetry];
    const opts = { method: "GET", retryOptions: retryOpts };
    const call = async () => {
      for (let counter = 1, failed = false; !failed; counter++)
        failed = await new Promise((done) =>
          decide({ statusCode: 503 }, { state: { counter }, opts }, done));
    };
    """,
    {"max_retries": 9, "min_timeout": 0.2, "max_timeout": 7, "timeout_factor": 1.5},
    in_seconds=("min_timeout", "max_timeout"),
)
