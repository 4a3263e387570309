"""Limits of loops: steps, counters that never count, helpers and defaults."""

import math

import pytest

from retrykit.audit._rules import RULES, check_site
from tests.audit.test_loops import loops, only

STEPS = [
    ("tries = 0", "while tries < 3", "tries += 1", 3),
    ("tries = 0", "while tries <= 3", "tries += 1", 4),
    ("left = 4", "while left > 1", "left = left - 1", 3),
    ("left = 4", "while left >= 1", "left -= 1", 4),
    ("left = 4", "while left", "left -= 1", 4),
    ("delay = 1", "while delay < 60", "delay *= 2", 6),
    ("delay = 1.0", "while delay <= 60", "delay = delay * 4", 3),
    # The first value, the last one or the step is not known.
    ("delay = first()", "while delay < 60", "delay *= 2", None),
    ("delay = 1", "while delay < MOST", "delay *= 2", None),
    ("delay = 1", "while delay < 60", "delay *= factor", None),
    ("delay = 1", "while delay < 60", "delay **= 2", None),
    ("delay = 70", "while delay < 60", "delay *= 2", None),
    ("delay = 0", "while delay < 60", "delay *= 2", None),
    # What never changes limits nothing.
    ("tries = 0", "while tries < 4", "pass", math.inf),
    ("tries = 0", "while tries < self.most", "pass", math.inf),
    ("tries = 0", "while tries < self.most", "self.most -= 1", None),
    ("tries = 0", "while tries < most()", "pass", None),
]


@pytest.mark.parametrize(("before", "test", "change", "calls"), STEPS)
def test_a_step_towards_the_end_limits_a_loop(before, test, change, calls):
    [site] = loops(f"""
    {before}
    {test}:
        try:
            return fetch()
        except OSError:
            log.info("retry")
            time.sleep(1)
        {change}
    """)
    assert site.behavior.calls == calls


@pytest.mark.parametrize(("most", "found"), [(1, 0), (2, 1)])
@pytest.mark.parametrize(
    "head", ["for attempt in range({0})", "tries = 0\n    while tries < {0}"]
)
def test_a_single_attempt_is_no_retry(head, most, found):
    sites = loops(f"""
    {head.format(most)}:
        tries += 1
        try:
            return fetch()
        except OSError:
            log.error("failed, retry")
    """)
    assert len(sites) == found


@pytest.mark.parametrize(
    ("change", "calls"), [("again = tries < 4", 4), ("again = is_new()", math.inf)]
)
def test_the_condition_may_have_been_compared_before(change, calls):
    [site] = loops(f"""
    again = True
    tries = 0
    while again:
        try:
            return fetch()
        except OSError:
            tries += 1
            {change}
    """)
    assert site.behavior.calls == calls


@pytest.mark.parametrize(
    ("arguments", "calls"), [("attempt, url", None), ("url", math.inf)]
)
def test_an_attempt_that_gets_the_count_may_limit_it(arguments, calls):
    source = f"""
        def load(self, url):
            attempt = 0
            while True:
                try:
                    return self._load({arguments})
                except AgainError:
                    attempt += 1

        def _load(self, attempt, url):
            try:
                return fetch(url)
            except OSError:
                if self.max_retries <= attempt:
                    raise
                raise AgainError
        """
    assert only(source).behavior.calls == calls


DEFAULTS = {
    # The default of `limit`, and a test that leaves the loop.
    "limit=None": "limit is not None and tries > limit",
    "limit= None": "limit and tries > limit",
    "limit=0": "limit > 0 and tries > limit",
    "limit=-1": "limit != -1 and tries > limit",
    "limit= -1": "0 <= limit < tries",
    "*, limit=None": "not (limit is None or tries <= limit)",
}


@pytest.mark.parametrize(("default", "test"), DEFAULTS.items(), ids=DEFAULTS)
def test_a_loop_may_have_no_limit_by_default(default, test):
    source = f"""
        def load({default}):
            tries = 0
            while True:
                try:
                    return fetch()
                except OSError:
                    tries += 1
                    if {test}:
                        raise
                    time.sleep(1)
        """
    assert only(source).behavior.usual == math.inf
    given = default.rpartition("=")[0]
    for other in (f"{given}=3", given.strip("*, ")):
        assert only(source.replace(default, other)).behavior.usual != math.inf


@pytest.mark.parametrize(
    ("test", "usual"),
    [("limit and tries > limit", math.inf), ("limit > 0 and tries > limit", None)],
)
def test_a_limit_that_none_cannot_be_compared_with_is_unknown(test, usual):
    source = f"""
        def load(limit=None):
            tries = 0
            while True:
                try:
                    return fetch()
                except OSError:
                    tries += 1
                    if {test}:
                        raise
                    time.sleep(1)
        """
    assert only(source).behavior.usual == usual


@pytest.mark.parametrize(
    ("default", "expected"),
    [
        (0, {"no-jitter", "retries-at-once"}),
        (1, {"no-jitter"}),
        (2, {"no-jitter", "retries-at-once"}),
        ("None", {"no-jitter", "retries-at-once"}),
    ],
)
def test_rules_look_at_the_number_of_retries_by_default(default, expected):
    found = set()
    for delay in ("pass", "time.sleep(1)"):
        source = f"""
            def load(*ids, retries: int = {default}):
                for attempt in range(retries + 1):
                    try:
                        return fetch()
                    except OSError:
                        if attempt == retries:
                            raise
                        {delay}
            """
        found |= {each.rule for each in check_site(only(source), RULES)}
    assert found == expected


DEFAULT_LIMITS = {
    "None": {"unbounded", "no-jitter", "growth-without-cap"},
    "5": {"no-jitter"},
    "20": {"no-jitter", "growth-without-cap"},
}


@pytest.mark.parametrize(
    ("default", "expected"), DEFAULT_LIMITS.items(), ids=DEFAULT_LIMITS
)
def test_rules_look_at_the_limit_by_default(default, expected):
    source = f"""
        def load(limit={default}, delay=1):
            tries = 0
            while limit is None or tries < limit:
                try:
                    return fetch()
                except OSError as error:
                    tries += 1
                    last = error
                    time.sleep(delay)
                    delay *= FACTOR
            raise last
        """
    assert {each.rule for each in check_site(only(source), RULES)} == expected


@pytest.mark.parametrize(("most", "found"), [(5000, True), (500, False)])
def test_a_delay_of_more_than_ten_minutes_is_too_long_even_if_it_has_a_cap(most, found):
    source = f"""
        def load():
            delay = 1
            while delay < {most}:
                try:
                    return fetch()
                except OSError:
                    time.sleep(delay)
                    delay *= 2
        """
    rules = {each.rule for each in check_site(only(source), RULES)}
    assert ("growth-without-cap" in rules) == found


@pytest.mark.parametrize(
    ("default", "usual"), [("None", math.inf), ("30", None), ("make()", None)]
)
def test_a_loop_may_have_no_time_limit_by_default(default, usual):
    source = f"""
        class Client:
            def __init__(self, limit={default}):
                self.limit = limit

            def load(self):
                start = time.monotonic()
                while self.limit is None or time.monotonic() - start < self.limit:
                    try:
                        return fetch()
                    except OSError:
                        time.sleep(1)
        """
    assert only(source).behavior.usual == usual


@pytest.mark.parametrize(
    ("taken", "calls"),
    [("next(sleeps)", None), ("next(pauses)", None), ("next(urls)", math.inf)],
)
def test_delays_that_are_taken_one_by_one_may_end(taken, calls):
    [site] = loops(f"""
    while True:
        try:
            return fetch()
        except OSError:
            log.info("failed")
        time.sleep({taken})
    """)
    assert site.behavior.calls == calls


@pytest.mark.parametrize(("most", "time"), [("leftover", None), ("most", math.inf)])
def test_a_delay_that_is_cut_to_the_time_left_tells_of_a_limit(most, time):
    [site] = loops(f"""
    while True:
        try:
            return fetch()
        except OSError:
            if {most} < delay:
                delay = {most}
            time.sleep(delay)
    """)
    assert site.behavior.elapsed == time


def test_what_replaces_a_default_limits_a_loop():
    source = """
        def load(limit=None):
            limit = limit or LIMIT
            tries = 0
            while limit is None or tries < limit:
                try:
                    return fetch()
                except OSError:
                    tries += 1
                    time.sleep(1)
        """
    assert only(source).behavior.usual is None


def test_a_function_that_ends_the_loop_limits_it_whatever_the_default():
    source = """
        def load(limit=None):
            tries = 0
            while True:
                try:
                    return fetch()
                except OSError:
                    tries += 1
                    if limit is not None and tries > limit:
                        raise
                    if policy.exhausted():
                        raise
                    time.sleep(1)
        """
    assert only(source).behavior.usual is None


@pytest.mark.parametrize(
    ("test", "before", "calls"),
    [
        ("left == 0", True, 3),
        ("error.fatal or left <= 0", True, 3),
        ("not left", True, 3),
        ("left == 0", False, 4),
        ("other == 0", True, math.inf),
    ],
)
def test_what_is_left_limits_a_loop(test, before, calls):
    step = "left -= 1"
    source = f"""
        def load():
            left = 3
            while True:
                try:
                    return fetch()
                except OSError as error:
                    {step if before else "pass"}
                    if {test}:
                        raise
                    {"pass" if before else step}
                    log.info("retrying")
        """
    assert only(source).behavior.calls == calls


@pytest.mark.parametrize(
    ("end", "ending"), [("return status, text", "?"), ("return None", "hidden")]
)
def test_a_result_may_be_returned_after_the_loops_around(end, ending):
    source = f"""
        def send(files, tries):
            for file in files:
                for retry in range(tries):
                    status, text = put(file)
                    if status != 0:
                        if status != BUSY or retry + 1 == tries:
                            return status, text
                    else:
                        break
            {end}
        """
    assert only(source).behavior.ending == ending


@pytest.mark.parametrize(("otherwise", "calls"), [("raise", None), ("pass", math.inf)])
def test_a_loop_over_delays_in_a_handler_may_end_the_outer_one(otherwise, calls):
    source = f"""
        def load(delays):
            delays = iter(delays)
            while True:
                try:
                    return fetch()
                except OSError:
                    for delay in delays:
                        time.sleep(delay)
                        break
                    else:
                        {otherwise}
        """
    assert only(source).behavior.calls == calls


@pytest.mark.parametrize(("step", "found"), [("*= 2", True), ("+= 2", False)])
def test_delays_of_an_endless_loop_that_grow_by_steps_need_no_cap(step, found):
    source = f"""
        def load():
            delay = 1
            while True:
                try:
                    return fetch()
                except OSError:
                    time.sleep(delay)
                    delay {step}
        """
    rules = {each.rule for each in check_site(only(source), RULES)}
    assert ("growth-without-cap" in rules) is found


@pytest.mark.parametrize(
    ("value", "calls"),
    [("next(delays, None)", None), ("find(error)", math.inf), ("delay", math.inf)],
)
def test_delays_that_come_to_an_end_may_limit_a_loop(value, calls):
    [site] = loops(f"""
    while True:
        try:
            return fetch()
        except OSError as error:
            pause = {value}
            if pause is None:
                break
            time.sleep(pause)
    """)
    assert site.behavior.calls == calls


@pytest.mark.parametrize(
    ("call", "elapsed"),
    [("asyncio.wait_for(inner(), 9)", None), ("inner()", math.inf)],
)
def test_a_call_with_a_timeout_limits_the_loop_in_its_function(call, elapsed):
    site = only(f"""
        async def load():
            async def inner():
                while True:
                    try:
                        return fetch()
                    except OSError:
                        await asyncio.sleep(1)

            return await {call}
        """)
    assert site.behavior.elapsed == elapsed


CLOCKS = {
    "an alarm": ("named", "signal.alarm(9)", None),
    "a timeout of eventlet": ("named", "eventlet.Timeout(5)", None),
    "a timeout of a request": ("named", "timeout = httpx.Timeout(5)", math.inf),
    "a decorator": ("timeout", "pass", None),
    "another decorator": ("cached", "pass", math.inf),
}


@pytest.mark.parametrize(
    ("decorator", "before", "elapsed"), CLOCKS.values(), ids=CLOCKS
)
def test_the_time_of_a_function_may_be_limited(decorator, before, elapsed):
    site = only(f"""
        @{decorator}
        def load():
            {before}
            while True:
                try:
                    return fetch()
                except OSError:
                    time.sleep(1)
        """)
    assert site.behavior.elapsed == elapsed


@pytest.mark.parametrize(
    ("step", "found"), [("delay", (None, None)), ("1", (601, math.inf))]
)
def test_a_sum_of_delays_limits_the_time(step, found):
    [site] = loops(f"""
    delay, total = 5, 0
    while True:
        try:
            return fetch()
        except OSError:
            pass
        if total <= 600:
            time.sleep(delay)
            total += {step}
            delay *= 2
        else:
            raise Failed
    """)
    calls, elapsed = site.behavior.calls, site.behavior.elapsed
    assert (calls if found[0] else None, elapsed) == found


@pytest.mark.parametrize(("field", "usual"), [("most", 4), ("more", None)])
@pytest.mark.parametrize("place", ["settings", "self.settings"])
def test_settings_that_are_given_have_the_defaults_of_their_class(place, field, usual):
    site = only(f"""
    class Settings:
        most: int = 3
        more: int

    class Client:
        def __init__(self, settings: Settings):
            self.settings = settings

        def load(self, settings: "Settings"):
            for attempt in range({place}.{field} + 1):
                try:
                    return fetch()
                except OSError:
                    time.sleep(1)
    """)
    assert (site.behavior.calls, site.behavior.usual) == (None, usual)


@pytest.mark.parametrize(
    ("end", "calls"), [("return None", None), ("delay = 60", math.inf)]
)
def test_a_delay_that_has_grown_ends_a_loop(end, calls):
    site = only(f"""
    def load():
        delay = 2
        while True:
            answer = fetch()
            if answer.status_code == 200:
                return answer
            if answer.status_code == 429:
                time.sleep(delay)
                delay *= 2
                if delay > 100:
                    {end}
    """)
    assert (None if site.behavior.elapsed is None else site.behavior.calls) == calls


@pytest.mark.parametrize("stop", ["stopped", "interrupted"])
def test_a_flag_that_stops_the_program_is_no_limit(stop):
    site = only(f"""
    def load(self):
        while not self._is_{stop}():
            try:
                return fetch()
            except OSError:
                time.sleep(1)
    """)
    assert site.behavior.calls == math.inf
