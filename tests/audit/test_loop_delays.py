"""Delays of loops: what is read of the argument of a sleep."""

import math

import pytest

from tests.audit.test_loops import loops, only

COUNTED = "for attempt in range(4):"
DELAYS = {
    # Numbers and names.
    "0": "no delay",
    "-1": "no delay",
    "DELAY": "constant delays, no jitter",
    "random.uniform(1, 5)": "5 s, with jitter, 15 s in all",
    "random.random()": "1 s, with jitter, 3 s in all",
    "random.randint(0, 2 ** attempt)": "1 s, 2 s, 4 s, with jitter, 7 s in all",
    # What grows with the attempts.
    "2 ** attempt": "1 s, 2 s, 4 s, no jitter, 7 s in all",
    "pow(2, attempt)": "exponential delays, no jitter",
    "1 << attempt": "exponential delays, no jitter",
    "2 ** min(attempt, 6) * DELAY": "exponential delays, no jitter",
    "attempt": "0 s, 1 s, 2 s, no jitter, 3 s in all",
    "5 * (attempt + 1)": "5 s, 10 s, 15 s, no jitter, 30 s in all",
    "attempt * attempt": "linear delays, no jitter",
    "2 ** attempt + random.random()": "exponential delays, with jitter",
    "2 ** attempt * DELAY": "exponential delays, no jitter",
    "DELAY ** 2": "delays: ?",
    "attempt % 3": "delays: ?",
    "2 ** attempt - 1": "exponential delays, no jitter",
    "DELAY + 1": "constant delays, no jitter",
    # Functions of these.
    "min(2 ** attempt, 3)": "1 s, 2 s, 3 s, no jitter, 6 s in all",
    "min(2 ** attempt, MOST)": "exponential delays, no jitter",
    "max(1, DELAY)": "constant delays, no jitter",
    "int(DELAY)": "constant delays, no jitter",
    "delay_of(attempt)": "delays: ?",
    # Choices.
    "5 if attempt else 1": "5 s, no jitter, 15 s in all",
    "DELAY or 3": "constant delays, no jitter",
    "[1, 2, 4][attempt]": "delays: ?, no jitter",
    "DELAYS[attempt]": "delays: ?",
    "SETTINGS['pause']": "constant delays, no jitter",
    "headers.get('Retry-After')": "constant delays, no jitter",
    "int(getattr(answer, 'wait', 0)) or 5": "constant delays, no jitter",
    "pauses.get(attempt)": "delays: ?",
    "'1'": "delays: ?",
    "await delay_of()": "delays: ?",
    "not DELAY": "delays: ?",
}


def told(source):
    [site] = loops(source, is_async="await" in source)
    calls, delays, _ = str(site.behavior).split("; ")
    return f"{calls}; {delays}"


@pytest.mark.parametrize(("argument", "expected"), DELAYS.items(), ids=DELAYS)
def test_the_argument_of_a_sleep_is_read(argument, expected):
    source = f"""
    {COUNTED}
        try:
            return fetch()
        except OSError:
            time.sleep({argument})
    """
    assert told(source) == f"4 calls; {expected}"


BEFORE_AND_AFTER = {
    "delay *= 2": "1 s, 2 s, 4 s, no jitter, 7 s in all",
    "delay += 3": "1 s, 4 s, 7 s, no jitter, 12 s in all",
    "delay -= 1": "delays: ?, no jitter",
    "delay *= 2; delay = min(delay, 3)": "1 s, 2 s, 3 s, no jitter, 6 s in all",
    "delay = delay * 2": "1 s, 2 s, 4 s, no jitter, 7 s in all",
    "delay = delay + 3": "linear delays, no jitter",
    "delay = (delay + 10) % 15": ("linear delays at most 15 s, no jitter"),
    "delay = min(delay * 2, 3)": "1 s, 2 s, 3 s, no jitter, 6 s in all",
    "delay = min(delay, 3)": "1 s, no jitter, 3 s in all",
    "delay *= random.uniform(1, 2)": "exponential delays, with jitter",
    "delay = 5": "5 s, no jitter, 15 s in all",
    "delay = delay_of(delay)": "1 s, no jitter, 3 s in all",
    "delay: float = 5": "5 s, no jitter, 15 s in all",
    "delay = other; other = delay": "delays: ?",
    "if delay > MOST: delay = MOST": "constant delays, no jitter",
    "delay *= 2; delay = delay if delay < 9 else 9": (
        "1 s, 2 s, 4 s, no jitter, 7 s in all"
    ),
}


@pytest.mark.parametrize(
    ("change", "expected"), BEFORE_AND_AFTER.items(), ids=BEFORE_AND_AFTER
)
def test_a_variable_is_followed_from_attempt_to_attempt(change, expected):
    source = f"""
    delay = 1
    {COUNTED}
        try:
            return fetch()
        except OSError:
            time.sleep(delay)
            {change}
    """
    assert told(source) == f"4 calls; {expected}"


LISTS = {
    "(1, 5, 25)": "3 calls; 1 s, 5 s, no jitter, 6 s in all",
    "(2, 2)": "2 calls; 2 s, no jitter, 2 s in all",
    "DELAYS": "? calls; delays: ?, no jitter",
    "delays_of()": "? calls; delays: ?",
    "range(FIRST, LAST)": "? calls; linear delays, no jitter",
    "range(1, 4)": "3 calls; 1 s, 2 s, no jitter, 3 s in all",
}


@pytest.mark.parametrize(("delays", "expected"), LISTS.items(), ids=LISTS)
def test_delays_may_be_listed(delays, expected):
    source = f"""
    for delay in {delays}:
        try:
            return fetch()
        except OSError:
            time.sleep(delay)
    """
    assert told(source) == expected


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("delay = 3", "3 s, no jitter, 9 s in all"),
        ("delay = random.uniform(1, 2)", "constant delays, with jitter"),
        ("delay = config.delay", "constant delays, no jitter"),
    ],
)
def test_a_variable_that_does_not_change_is_a_constant_delay(before, expected):
    source = f"""
    {before}
    {COUNTED}
        try:
            return fetch()
        except OSError:
            time.sleep(delay)
    """
    assert told(source) == f"4 calls; {expected}"


def test_a_delay_that_the_loop_caps_has_an_unknown_cap():
    source = f"""
    delay = 1
    {COUNTED}
        try:
            return fetch()
        except OSError:
            time.sleep(delay)
            delay *= 2
            if delay > MOST:
                delay = MOST
    """
    assert told(source) == "4 calls; exponential delays, no jitter"


@pytest.mark.parametrize(
    ("delay", "cap"),
    [
        ("2 ** attempt", math.inf),
        ("2 ** min(attempt, 6)", None),
        ("DELAY * 2 ** min(attempt, 6)", None),
        ("2 ** power", None),
        ("1 << power", None),
    ],
)
def test_an_exponent_may_have_a_cap(delay, cap):
    [site] = loops(f"""
    for attempt in range(LIMIT):
        try:
            return fetch()
        except OSError:
            power = min(attempt, 6)
            time.sleep({delay})
    """)
    assert site.behavior.delays.cap == cap


def test_a_counter_of_itertools_begins_where_it_is_told():
    [site] = loops("""
    for attempt in itertools.count(1):
        try:
            return fetch()
        except OSError:
            if attempt == 3:
                raise
            time.sleep(1)
    """)
    assert site.behavior.calls == 3


@pytest.mark.parametrize(
    ("turns", "shape"),
    [
        ("Turns(3)", "unknown"),
        ("range(3)", "none"),
        ("list(range(3))", "none"),
        ("(1, 2, 3)", "none"),
    ],
)
def test_what_is_iterated_over_may_sleep(turns, shape):
    source = f"""
    turns = {turns}
    for attempt in {{turns}}:
        try:
            return fetch()
        except OSError:
            log.info("failed")
    """
    for each in ("turns", turns):
        [site] = loops(source.replace("{turns}", each))
        assert site.behavior.delays.shape == shape


@pytest.mark.parametrize(
    ("test", "shape"),
    [("proceed()", "unknown"), ("attempt < 5", "none"), ("len(found) < 5", "none")],
)
def test_a_condition_may_sleep(test, shape):
    [site] = loops(f"""
    attempt = 0
    while {test}:
        attempt += 1
        try:
            return fetch()
        except OSError:
            log.info("failed")
    """)
    assert site.behavior.delays.shape == shape


@pytest.mark.parametrize(
    ("success", "shape"),
    [
        ("shop.greet(); time.sleep(1)", "none"),
        ("shop.greet(); time.sleep(REST)", "none"),
        ("while shop.is_busy(): time.sleep(0.1)", "none"),
        ("time.sleep(1); shop.greet()", "constant"),
    ],
)
def test_a_sleep_at_the_end_of_a_success_is_no_delay(success, shape):
    [site] = loops(f"""
    for attempt in range(9):
        try:
            with connect() as shop:
                {success}
            return
        except OSError:
            log.info("failed")
    """)
    assert site.behavior.delays.shape == shape


@pytest.mark.parametrize(
    ("test", "cap"), [("delay < 60", 60), ("delay < MOST", None), ("9 > delay", None)]
)
def test_a_delay_may_be_capped_by_the_condition_of_its_loop(test, cap):
    [site] = loops(f"""
    delay = 1
    while {test}:
        try:
            return fetch()
        except OSError:
            time.sleep(delay)
            delay *= 2
    """)
    assert site.behavior.delays.cap == cap


@pytest.mark.parametrize(("test", "grows"), [("delay", False), ("other", True)])
def test_a_test_may_cap_a_delay_that_is_computed(test, grows):
    source = f"""
        number = 0
        while True:
            try:
                return send()
            except OSError:
                delay = 2 ** number
                if {test} > most:
                    delay = most
                time.sleep(delay)
                number += 1
        """
    [site] = loops(source)
    assert site.behavior.delays.grows is grows


@pytest.mark.parametrize(
    ("before", "shape"), [("log.info('soon')", "constant"), ("greet()", "none")]
)
def test_an_attempt_may_begin_with_a_delay(before, shape):
    [site] = loops(f"""
    while attempts < 5:
        try:
            attempts += 1
            {before}
            time.sleep(9)
            link.connect()
            break
        except OSError as error:
            log.info("failed")
    """)
    assert site.behavior.delays.shape == shape


@pytest.mark.parametrize(("name", "jitter"), [("jitter_sleep", True), ("sleep", False)])
def test_the_name_of_a_sleep_tells_that_it_is_random(name, jitter):
    [site] = loops(
        f"""
    for attempt in range(4):
        try:
            return fetch()
        except OSError:
            await {name}(self.delay)
    """,
        is_async=True,
    )
    assert site.behavior.delays.jitter is jitter


@pytest.mark.parametrize(
    ("first", "jitter"), [("self._rate_limit_sleep()", None), ("greet()", False)]
)
def test_an_attempt_may_begin_with_a_wait_for_its_rate(first, jitter):
    [site] = loops(f"""
    for attempt in range(4):
        try:
            {first}
            return fetch()
        except OSError:
            time.sleep(1)
    """)
    assert site.behavior.delays.jitter is jitter


@pytest.mark.parametrize(
    ("change", "jitter"), [("delay = delay * random.random()", True), ("pass", False)]
)
def test_a_helper_may_change_the_delay_that_it_is_given(change, jitter):
    source = f"""
    import random, time

    def fetch_it():
        delay = 1.0
        for attempt in range(4):
            try:
                return fetch()
            except OSError:
                delay = pause(delay)

    def pause(delay):
        {change}
        time.sleep(delay)
        return delay
    """
    assert only(source).behavior.delays.jitter is jitter


TOLD_BY_SERVER = {
    "error.retry_after": None,
    "min(error.retry_after + 1, 30)": None,
    "self.retry_after": False,
    "retry_after": False,
    "error.seconds": False,
}


@pytest.mark.parametrize(("delay", "jitter"), TOLD_BY_SERVER.items())
def test_a_server_may_tell_the_delay(delay, jitter):
    site = only(f"""
    def load(self, retry_after):
        {COUNTED}
            try:
                return fetch()
            except LimitError as error:
                time.sleep({delay})
    """)
    assert site.behavior.delays.jitter is jitter


@pytest.mark.parametrize("first", ["random.random()", "1"])
def test_a_delay_that_grows_may_begin_at_random(first):
    site = only(f"""
    def load():
        delay = {first}
        {COUNTED}
            try:
                return fetch()
            except OSError:
                time.sleep(delay)
                delay *= 2
    """)
    assert site.behavior.delays.jitter is (first != "1")
