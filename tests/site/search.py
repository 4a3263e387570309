"""Asks the search of the built site: ``python -m tests.site.search build/site``.

The questions are as one types them into a search engine. The first answer
must be one of the pages named.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from tests._support.chromium import started
from tests.site.server import served

__all__ = ["ANSWERS", "main"]

ANSWERS = {
    "python retry decorator with exponential backoff": "how_to/exponential_backoff",
    "retry only some exceptions": "how_to/retry_only_some_exceptions",
    "retry on status code 429": "how_to/retry_on_429_and_503",
    "async retry python": "how_to/retry_async_function",
    "retry requests with timeout": "how_to/retry_requests how_to/timeout_per_attempt",
    "httpx retry": "how_to/retry_httpx",
    "stop retrying after 5 minutes": "how_to/stop_after_a_time",
    "return None after retries": "how_to/return_a_default",
    "circuit breaker python": "how_to/circuit_breaker patterns/circuit_breaker "
    "circuit_breakers",
    "test retry without sleeping": "how_to/turn_retries_off_in_tests "
    "how_to/assert_delays testing",
    "migrate from tenacity": "how_to/migrate_from_tenacity migrating",
    "rate limit calls per second": "how_to/limit_calls_per_second rate_limits",
    "retry until result is not None": "how_to/poll_until_done how_to/retry_on_a_result",
    "log retries with structlog": "how_to/log_with_structlog",
    "prometheus metrics for retries": "how_to/count_retries_in_prometheus",
    "what is jitter": "how_to/exponential_backoff glossary schedules why",
    "retry database deadlock": "how_to/retry_a_database_transaction",
    "before_sleep callback": "how_to/run_code_before_each_retry migrating",
    "max_attempts and max_elapsed": "policies settings how_to/stop_after_a_time",
    "retry budget": "patterns/retry_budget how_to/limit_all_retries",
    "never take longer than 20 seconds in total": "how_to/stop_after_a_time",
    "limit total time including hanging request": "how_to/stop_after_a_time "
    "how_to/timeout_per_attempt patterns/timeouts",
    "retry-after 429 maximum wait 60 seconds": "how_to/respect_retry_after",
    "print every error that occurred with its time": "how_to/see_why_a_call_gave_up",
    "history of all errors after giving up": "how_to/see_why_a_call_gave_up state",
    "retry async httpx timeout 2 seconds each attempt": "how_to/retry_httpx "
    "how_to/timeout_per_attempt",
    "stop calling a service 30 seconds after 5 failures": "how_to/circuit_breaker "
    "circuit_breakers patterns/circuit_breaker",
    "circuit breaker shared by two functions": "how_to/circuit_breaker "
    "patterns/circuit_breaker",
    "rate limit 5 calls per second and 3 concurrent": "how_to/limit_calls_per_second "
    "rate_limits",
    "limit concurrent calls": "concurrency_limits how_to/limit_calls_per_second",
    "disable retries globally pytest conftest": "how_to/turn_retries_off_in_tests",
    "retry budget 10 percent": "how_to/limit_all_retries patterns/retry_budget",
    "hedge second request after p95": "how_to/hedge_a_slow_read hedging",
    "does the server recover after overload": "simulation metastable_failures",
    "worst case duration": "how_to/preview_the_waits",
    "poll a job until its status is done every 5 s": "how_to/poll_until_done",
    "generator loses connection in the middle": "how_to/retry_a_generator streams",
    "pages of an API cursor": "how_to/retry_a_generator",
    "boto3 s3 retries off": "how_to/retry_boto3",
    "max_attempts from argument": "how_to/settings_from_self",
    "same retry settings everywhere": "how_to/share_retry_settings",
    "budget ThreadPoolExecutor count retries": "how_to/retry_in_a_thread_pool",
    "installation": "install",
    "getting started": "tutorial install",
}


def first_answer(driver, address, question):
    """Return the page that the search page shows first."""
    driver.get(f"{address}/search.html?q={quote(question)}")
    link = WebDriverWait(driver, 60).until(
        lambda page: (
            page.find_elements(By.CSS_SELECTOR, "a.pagefind-ui__result-link")
            or "No results" in page.find_element(By.ID, "search").text
        )
    )
    if link is True:
        return "nothing"
    found = link[0].get_attribute("href").removeprefix(f"{address}/")
    return found.partition(".html")[0]


def main() -> int:
    """Print each answer; return how many are wrong."""
    wrong = 0
    with (
        TemporaryDirectory() as folder,
        served(Path(sys.argv[1])) as address,
        started(Path(folder)) as browser,
    ):
        for question, pages in ANSWERS.items():
            found = first_answer(browser.chrome, address, question)
            right = found in pages.split()
            wrong += not right
            print("right" if right else "WRONG", question, "->", found)
    print(f"{len(ANSWERS) - wrong} of {len(ANSWERS)} first answers are right")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
