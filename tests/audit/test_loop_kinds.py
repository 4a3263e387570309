"""Kinds of loops: what tells a retry from a poll, a fallback or a worker."""

import math

import pytest

from retrykit.audit._rules import RULES, check_site
from tests.audit.test_loops import loops

RETRIES = {
    "a number of the turn that is only logged": """
    for current_try in range(3):
        try:
            async with connect() as answer:
                log.debug("try {}".format(current_try).replace("0", "first"))
                return answer
        except OSError:
            await asyncio.sleep(1)
    """,
    "a number that only a handler in the attempt uses": """
    for number in range(tries):
        try:
            try:
                return fetch()
            except KeyError as error:
                observe(error, number)
                raise ApiError from error
        except ApiError:
            time.sleep(1)
    """,
}


@pytest.mark.parametrize("source", RETRIES.values(), ids=RETRIES)
def test_a_loop_whose_attempts_are_equal_retries(source):
    assert len(loops(source, is_async=True)) == 1


@pytest.mark.parametrize(
    ("name", "found"), [("wait_and_retry", 1), ("wait_for_server", 0)]
)
def test_a_function_that_waits_may_retry(name, found):
    source = """
    number = 0
    while True:
        try:
            return fetch()
        except OSError:
            number += 1
            time.sleep(1)
    """
    assert len(loops(source, name=name)) == found


def test_an_attempt_that_begins_with_a_sleep_polls():
    source = """
    while True:
        try:
            time.sleep(1)
            return fetch()
        except OSError:
            log.info('failed')
    """
    assert loops(source) == []
    source = source.replace("time.sleep(1)", "prepare(1)")
    assert len(loops(source.replace("log.info('failed')", "time.sleep(1)"))) == 1


def test_a_loop_that_sleeps_before_it_asks_polls():
    source = """
    for attempt in range(20):
        {}
        found = find()
        if found:
            break
        {}
    """
    assert loops(source.format("time.sleep(1)", "pass")) == []
    assert loops(source.format("await asyncio.sleep(1)", "pass"), is_async=True) == []
    assert len(loops(source.format("log.debug('again')", "time.sleep(1)"))) == 1
    assert len(loops(source.format("time.sleep(1)", "time.sleep(5)"))) == 1


THROTTLED = {
    "a status in a loop over results": """
    while True:
        answer = fetch()
        if answer.status_code == 429:
            time.sleep(30)
            continue
        return answer.json()
    """,
    "a header in the condition": """
    answer = fetch()
    while "Retry-After" in answer.headers:
        time.sleep(1)
        answer = fetch()
    """,
    "a status beside an error": """
    while True:
        try:
            answer = fetch()
            if answer.status == 429:
                time.sleep(30)
            else:
                break
        except OSError:
            time.sleep(1)
    """,
    "a number of retries without a delay": """
    for retry_count in range(most):
        answer = fetch()
        if is_good(answer):
            return answer
    """,
    "a response that is returned if its status is good": """
    turn = 0
    while turn < 5:
        turn += 1
        answer = fetch()
        if answer.ok:
            return answer.json()
        time.sleep(turn)
    """,
    "a condition that a result makes false": """
    retry = 0
    answer = fetch()
    while not answer and retry < 3:
        retry += 1
        answer = fetch()
    """,
}


@pytest.mark.parametrize("source", THROTTLED.values(), ids=THROTTLED)
def test_a_loop_that_asks_again_retries(source):
    assert len(loops(source)) == 1


@pytest.mark.parametrize(
    "end", ["answer.kind == 7: return answer", "answer.ok: return True"]
)
def test_a_loop_that_tells_nothing_of_retries_polls(end):
    source = f"""
    while True:
        answer = fetch()
        if {end}
        time.sleep(30)
    """
    assert loops(source) == []


@pytest.mark.parametrize(
    ("handler", "calls"),
    [("continue", math.inf), ("log.debug('again')", math.inf), ("renew()", None)],
)
def test_an_error_after_which_nothing_is_asked_has_no_limit(handler, calls):
    [site] = loops(f"""
    while True:
        try:
            return fetch()
        except ExpiredError:
            {handler}
        except BusyError as error:
            log.info("retrying")
            handle(error)
    """)
    assert site.behavior.calls == calls


@pytest.mark.parametrize(
    ("first", "test", "change", "calls"),
    [
        ("0", "attempt", "attempt += 1", 2),
        ("3", "not attempt", "attempt -= 1", 4),
        ("3", "not attempt", "attempt -= 2", None),
        ("-1", "not attempt", "attempt -= 1", None),
        ("first()", "attempt", "attempt += 1", None),
        ("0", "attempt > 0", "attempt += 1", 2),
        ("0", "stale or attempt > 0", "attempt += 1", 2),
        ("0", "stale and attempt > 0", "attempt += 1", None),
    ],
)
def test_a_counter_that_is_asked_whether_it_is_zero_limits_a_loop(
    first, test, change, calls
):
    [site] = loops(f"""
    attempt = {first}
    while True:
        try:
            return fetch()
        except OSError:
            if {test}:
                raise
            {change}
    """)
    assert site.behavior.calls == calls


def test_what_another_function_counts_has_no_usual_limit():
    [site] = loops("""
    while True:
        try:
            return fetch()
        except OSError as error:
            log.info("retrying")
            raise_after(error, retries)
    """)
    assert site.behavior.calls is site.behavior.usual is None


@pytest.mark.parametrize(
    ("step", "jitter"),
    [
        ("base, pause = draw(base)", None),
        ("base, pause = base * 2, base + random.random()", True),
        ("base, pause = base * 2, 3", False),
        ("(base, *rest), pause = draw(), 3", False),
    ],
)
def test_delays_may_be_assigned_with_others(step, jitter):
    [site] = loops(f"""
    for attempt in range(4):
        try:
            return fetch()
        except OSError:
            {step}
            time.sleep(pause)
    """)
    assert site.behavior.delays.jitter is jitter


def test_limits_and_delays_may_be_assigned_together():
    [site] = loops("""
    left, delay = 4, 2
    while left > 1:
        try:
            return fetch()
        except OSError:
            time.sleep(delay)
            left, delay = left - 1, delay * 3
    """)
    assert str(site.behavior.delays) == "2 s, 6 s, 18 s ..."


def test_names_that_get_more_than_one_value_are_unknown():
    [site] = loops("""
    left, *delays = 4, 2, 3
    while left > 1:
        try:
            return fetch()
        except OSError:
            left -= 1
            time.sleep(delays[0])
    """)
    assert site.behavior.calls is None


def test_a_sum_with_what_is_computed_anew_is_no_step():
    [site] = loops("""
    for attempt in range(4):
        try:
            return fetch()
        except OSError:
            delay = 2 ** attempt
            delay += random.random()
            time.sleep(delay)
    """)
    assert site.behavior.delays.shape == "exponential"
    assert site.behavior.delays.jitter


@pytest.mark.parametrize(("error", "found"), [("ConflictError", 0), ("ApiError", 1)])
def test_a_loop_that_ends_with_a_conflict_compares_and_sets(error, found):
    source = f"""
    for attempt in range(3):
        try:
            return write(read())
        except Refused as refused:
            if attempt == 2:
                raise {error} from refused
    """
    assert len(loops(source)) == found


def test_a_handler_that_counts_and_raises_does_not_go_on_without_an_end():
    [site] = loops("""
    attempts = lacks = 0
    while True:
        try:
            return fetch()
        except LackError:
            if lacks < MOST:
                lacks += 1
                continue
            raise
        except GapError:
            attempts += 1
            time.sleep(decide(attempts))
    """)
    assert site.behavior.calls is None


@pytest.mark.parametrize(
    ("test", "retried"),
    [
        ("not session.begun", None),
        ("attempt == 0", ("Exception",)),
        ("retries", ("Exception",)),
        ("not renewed", ("Exception",)),
    ],
)
def test_a_state_sorts_errors_out(test, retried):
    [site] = loops(f"""
    for attempt in range(3):
        try:
            return fetch()
        except Exception:
            if {test}:
                renewed = True
                continue
            raise
    """)
    assert site.behavior.retried == retried


def test_a_helper_with_a_name_of_errors_may_end_a_loop():
    [site] = loops("""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return fetch()
        except Exception as error:
            pause = _retry_error_helper(error, deadline)
            time.sleep(pause)
    """)
    assert site.behavior.calls is None


SILENT = """
for number in range(3):
    try:
        return fetch()
    except StateError as error:
        {}
"""
TOLD = {
    "it is logged": "log.debug('no answer')",
    "it is kept": "last = error",
    "it is logged at the end": "if number == 2:\n            log.error(error)",
}
RULES_OF_PLAIN = {"retries-at-once", "error-hidden"}


def broken_rules(source):
    """Return the rules that the only loop breaks."""
    [site] = loops(source)
    return {each.rule for each in check_site(site, RULES)}


@pytest.mark.parametrize("told", TOLD.values(), ids=TOLD)
def test_a_silent_loop_may_poll_and_breaks_no_rule(told):
    assert not broken_rules(SILENT.format("pass"))
    assert "retries-at-once" in broken_rules(SILENT.format(told))


OF_OTHERS = ["Exception", "OSError", "ConnectionError", "HTTPError", "RemoteFailure"]


@pytest.mark.parametrize("name", OF_OTHERS)
def test_errors_of_other_programs_are_failures(name):
    source = SILENT.format("pass").replace("StateError", name)
    assert broken_rules(source) >= RULES_OF_PLAIN


FEW = {
    "few turns": ("for _ in range(5):", "", "OSError", True),
    "more turns": ("for _ in range(6):", "", "OSError", False),
    "more turns after every error": ("for _ in range(6):", "", "Exception", True),
    "an attempt": ("for attempt in range(6):", "", "OSError", True),
    "a text": ("for _ in range(6):", "log.info('again, attempt 2')", "OSError", True),
    "another text": ("for _ in range(6):", "log.info('again')", "OSError", False),
    "an end": ("while time.time() < end:", "", "OSError", False),
    "an end after every error": ("while time.time() < end:", "", "Exception", False),
    "delays that grow": ("while delay < 9:", "delay *= 2", "OSError", True),
    "no end": ("while True:", "", "OSError", True),
    "a condition of few turns": ("while delay < 4:", "delay += 1", "OSError", True),
}


@pytest.mark.parametrize(
    ("head", "told", "error", "found"), FEW.values(), ids=FEW.keys()
)
def test_a_loop_with_many_turns_retries_if_it_says_so(head, told, error, found):
    source = f"""
    delay = 1
    {head}
        try:
            return fetch()
        except {error}:
            {told or "pass"}
            time.sleep(delay)
    """
    rules = broken_rules(source)
    assert ("no-jitter" in rules) == found
    assert bool(rules) == found


def test_the_name_of_a_function_says_that_it_retries():
    source = """
    for _ in range(20):
        try:
            return fetch()
        except OSError:
            time.sleep(1)
    """
    for name in ("fetch_with_retries", "fetch_twice"):
        [site] = loops(source, name=name)
        found = {each.rule for each in check_site(site, RULES)}
        assert ("no-jitter" in found) == ("retries" in name)


def test_an_error_of_ansible_ends_a_loop():
    """After that, the loop asks again for its results only."""
    source = """
    for attempt in range(9):
        try:
            answer = fetch()
        except ClientError as error:
            module.{}(error)
        if name in answer:
            break
        time.sleep(1)
    """
    assert broken_rules(source.format("show"))
    for name in ("fail_json_aws", "fail_json", "exit_json"):
        sites = loops(source.format(name))
        assert not any([*check_site(each, RULES)] for each in sites)


def test_a_loop_that_repeats_a_call_for_its_results_tests_a_status_and_logs():
    source = """
    for attempt in range(9):
        answer = fetch()
        if answer.{}:
            return answer
        {}
        time.sleep(1)
    """
    assert broken_rules(source.format("ok", "log.info(attempt)")) >= {"no-jitter"}
    assert not broken_rules(source.format("rows", "log.info(attempt)"))
    assert not broken_rules(source.format("ok", "pass"))


def test_a_loop_that_sorts_errors_in_an_unknown_way_breaks_fewer_rules():
    source = SILENT.replace("StateError", "Exception")
    some = broken_rules(source.format("if not can_pass(error):\n            raise"))
    assert not some & RULES_OF_PLAIN
    some = broken_rules(source.format("if not error.retryable:\n            raise"))
    assert "retries-at-once" in some
    assert broken_rules(source.format("pass")) > RULES_OF_PLAIN


ENDLESS = """
answer, done = None, False
while {}:
    try:
        {}
    except OSError:
        log.warning("no answer")
        time.sleep(1)
"""


LEFT = {
    "at once": (("True", "return fetch()"), True),
    "by a flag": (("not done", "fetch()\n        done = True"), True),
    "by a result": (("not answer", "answer = fetch()"), False),
}


@pytest.mark.parametrize(("parts", "found"), LEFT.values(), ids=LEFT)
def test_a_loop_without_a_limit_is_left_by_a_success(parts, found):
    source = ENDLESS.format(*parts)
    assert loops(source)[0].behavior.calls == math.inf
    assert ("unbounded" in broken_rules(source)) is found


def test_a_loop_with_a_limit_of_time_need_not_be_left_at_once():
    test = "not answer and time.time() < end"
    source = ENDLESS.format(test, "answer = fetch()").replace("no answer", "retrying")
    assert "error-hidden" in broken_rules(source)


@pytest.mark.parametrize(("tested", "found"), [("size", False), ("left", True)])
def test_a_default_after_an_error_is_no_failed_turn(tested, found):
    """Only if the loop looks at it."""
    source = f"""
    retries = 0
    while retries < 3:
        answer = fetch()
        try:
            left = int(answer.headers["left"])
        except:
            left = None
        if {tested} is None:
            time.sleep(1)
            retries += 1
            continue
        return answer
    """
    rules = broken_rules(source) if loops(source) else set()
    assert ("cancellation-swallowed" in rules) is found


def test_a_flag_of_a_silent_loop_may_be_that_of_a_poll():
    source = ENDLESS.format("not done", "fetch()\n        done = True")
    assert "unbounded" not in broken_rules(source.replace("log.warning", "close"))


@pytest.mark.parametrize(("told", "found"), [("pass", False), ("log.info(1)", True)])
def test_a_loop_that_logs_bad_results_repeats_what_failed(told, found):
    source = f"""
    for attempt in range(3):
        answer = fetch()
        if answer.status_code == 200:
            return answer
        {told}
    """
    assert ("retries-at-once" in broken_rules(source)) is found


TESTS = {
    "the number of tries in another place": ("self.is_tired", False),
    "the error": ("error.fatal", True),
    "the end of the program": ("self.stopped.is_set()", True),
}


@pytest.mark.parametrize(("test", "found"), TESTS.values(), ids=TESTS)
def test_a_test_that_may_give_up_is_perhaps_a_limit(test, found):
    source = f"""
    while True:
        try:
            return fetch()
        except OSError as error:
            if {test}:
                raise
            time.sleep(1)
    """
    assert ("unbounded" in broken_rules(source)) is found


def test_the_time_now_may_limit_a_loop():
    [site] = loops("""
    endtime = begun + 60
    while True:
        try:
            return fetch()
        except OSError:
            curtime = self.reactor.monotonic()
            if curtime > endtime:
                return
            time.sleep(1)
    """)
    assert site.behavior.elapsed is None


@pytest.mark.parametrize(("status", "found"), [(429, True), (510, False)])
def test_a_loop_over_results_without_an_end_may_send_pages(status, found):
    source = f"""
    pages = []
    while True:
        answer = session.post(url, json=pages)
        log.debug("answer", answer)
        if answer.status_code != {status}:
            return answer
        time.sleep(1)
    """
    assert ("unbounded" in broken_rules(source)) is found
