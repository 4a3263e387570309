"""The libraries that retry, in JavaScript."""

from tests.originals.javascript import register

register(
    "axios-retry/dist/esm/index.js",
    """
    const { default: axios } = await load("axios/index.js");
    const { retryDelay: kind, delayFactor, ...options } = settings;
    const exponential = (n, error) => library.exponentialDelay(n, error, delayFactor);
    const delays = { exponential, linear: library.linearDelay(delayFactor) };
    original(axios, { ...options, ...(kind && { retryDelay: delays[kind] }) });
    const call = () => axios.get("http://localhost/", { adapter: fail });
    """,
    {"retry_delay": "exponential", "retries": 6},
    {"retry_delay": "exponential", "delay_factor": 0.5},
    {"retry_delay": "linear", "delay_factor": 0.25},
    how="a run",
)

register(
    "bullmq/dist/esm/classes/backoffs.js",
    """
    const backoff = { type: "exponential", delay: 1000, attempts: 3, ...settings };
    const delayOf = (made) => library.Backoffs.calculate(backoff, made);
    const call = () => follow(backoff.attempts - 1, delayOf);
    """,
    {"attempts": 8, "jitter": 0.5},
    {"attempts": 5, "type": "fixed", "jitter": 1, "delay": 0.25},
    {"type": "fixed", "delay": 2},
)

register(
    "got/dist/source/core/calculate-retry-delay.js",
    """
    const { default: Options } = await load("got/dist/source/core/options.js");
    const retryOptions = new Options({ retry: settings }).retry;
    const error = { code: "ECONNRESET", options: { method: "GET" } };
    const delayOf = (n) => original({ attemptCount: n, retryOptions, error }) || false;
    const call = () => follow(retries, delayOf);
    """,
    {"limit": 6, "backoff_limit": 5, "noise": 0.05},
    {"limit": 4, "backoff_limit": 0},
    {"limit": 8, "noise": 0},
)

register(
    "ky/distribution/index.js",
    """
    const options = { retry: settings, timeout: false, fetch: fail };
    const call = () => original("http://localhost/", options);
    """,
    {"limit": 6, "backoff_limit": 2},
    {"limit": 5, "jitter": True, "backoff_limit": 1},
    how="a run",
)

register(
    "retry/index.js",
    "const call = () => { waits = original.timeouts(settings); };",
    {"randomize": True},
    {"randomize": True, "factor": 3, "min_timeout": 0.0125, "max_timeout": 0.5},
    {"factor": 1.37, "min_timeout": 0.05, "max_timeout": 0.2, "retries": 12},
    {"min_timeout": 0, "retries": 3},
    preset="node-retry",
)

register(
    "p-retry/index.js",
    "const call = () => original(fail, settings);",
    {"randomize": True, "factor": 1.2},
    {"randomize": True, "factor": 3, "min_timeout": 0.0125, "max_timeout": 0.5005},
    {"factor": 1.37, "min_timeout": 0.05, "max_timeout": 0.2, "retries": 12},
    how="a run",
)

register(
    "undici/lib/handler/retry-handler.js",
    """
    const { retryOpts } = new original({ retryOptions: settings }, {});
    const opts = { method: "GET", retryOptions: retryOpts };
    const failed = (counter) => new Promise((done) =>
      retryOpts.retry({ statusCode: 503 }, { state: { counter }, opts }, done));
    const call = async () => {
      for (let counter = 1; !(await failed(counter)); counter++);
    };
    """,
    {"max_retries": 9, "min_timeout": 0.2, "max_timeout": 7, "timeout_factor": 1.5},
)
