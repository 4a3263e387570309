"""Retry rules of Exim."""

import pytest
from hypothesis import given, strategies as st

from retrykit import ConfigError, Policy, schedules as s
from retrykit.config import foreign
from retrykit.testing import virtual_time

# The rule of the default configuration, explained in the specification.
DEFAULT = "F,2h,15m; G,16h,1h,1.5; F,4d,6h"
CONFIGURATION = f"""\
# The main section.
primary_hostname = mail.example.org
begin routers
local:
  driver = accept
begin retry

# Address or Domain    Error       Retries
*.example.org          refused     F,1h,10m
*                      *           {DEFAULT}

begin rewrite
* * F,1d,1h
"""
DIFFERENCE = (
    "temporary errors alone are retried, when the next queue runner comes; the policy "
    "retries every error, at that time"
)


def read(rules, **settings):
    return foreign.read({"retry": rules} | settings, closest=True)


def configuration(tmp_path, text):
    path = tmp_path / "exim.conf"
    path.write_text(text)
    return path


def refused(tmp_path, rules):
    path = configuration(tmp_path, f"begin retry\n\n{rules}\n")
    with pytest.raises(ConfigError) as caught:
        foreign.read(path, closest=True)
    where, _, message = caught.value.message.partition(": ")
    assert where == f"{path}, line 3"
    return message


def attempts(policy):
    """Return the times of attempts that take no time and fail."""
    times = []
    with virtual_time() as clock:
        start = clock.now()

        def fail():
            times.append(round(clock.now() - start))
            raise OSError

        with pytest.raises(OSError):
            policy.call(fail)
    return times


def attempts_of_exim(rules, longest=86_400):
    """Return the times of attempts, as its ``retry_update`` computes them."""
    now = last = 0
    times = [0]
    while True:
        rule = next((rule for rule in rules if now <= rule[1]), None)
        if rule is None:
            return times
        letter, _, interval, *factor = rule
        if letter == "F" or last < interval:
            gap = interval
        else:
            gap = last * int(factor[0] * 1000) // 1000
        last = min(gap, longest)
        now += last
        times.append(now)


def test_the_default_rule():
    reading = read(DEFAULT)
    growing = [3600, 5400, 8100, 12150, 18225, 27337]
    assert reading.policy == Policy(
        schedule=s.constant(900)
        .take(9)
        .then(s.sequence(growing).then(s.constant(21600))),
        on=Exception,
        max_elapsed="4d",
        deadline="overshoot",
    )
    assert reading.differences == (f"retry: {DIFFERENCE}",)
    rules = [("F", 7200, 900), ("G", 57_600, 3600, 1.5), ("F", 345_600, 21_600)]
    assert attempts(reading.policy) == attempts_of_exim(rules)


def test_a_rule_is_never_exact():
    with pytest.raises(ConfigError, match="temporary errors alone are retried"):
        foreign.read({"retry": DEFAULT})


def test_the_lines_of_a_configuration_are_found(tmp_path):
    path = configuration(tmp_path, CONFIGURATION)
    assert foreign.names(path) == ["*.example.org", "*"]
    reading = foreign.read(path, "*.example.org", closest=True)
    assert reading.policy.on is ConnectionRefusedError
    assert reading.policy.max_elapsed == 3600
    assert reading.differences == (f"{path}, line 9: retry[0].rules: {DIFFERENCE}",)
    assert foreign.read(path, "*", closest=True).policy == read(DEFAULT).policy


def test_lines_of_one_pattern_have_the_name_of_their_error(tmp_path):
    text = "begin retry\n* timeout F,1h,1m\n* * F,2h,1m\nx * F,1h,1m\n"
    path = configuration(tmp_path, text)
    assert foreign.names(path) == ["* timeout", "* *", "x"]
    assert foreign.read(path, "* timeout", closest=True).policy.on is TimeoutError


@pytest.mark.parametrize(
    "text",
    [
        "",
        "begin retries",
        "retry: 1",
        "* * F,2h,15m",
        "begin rewrite\n* * F,2h,15m\n",
        "begin retry\n# * * F,2h,15m",
    ],
)
def test_other_texts_have_no_rules(tmp_path, text):
    assert foreign.names(configuration(tmp_path, text)) == []


@pytest.mark.parametrize(
    "document", [{"retry": 3}, {"retry": "4"}, {"text": CONFIGURATION}, {"retry": {}}]
)
def test_other_documents_have_no_rules(document):
    assert foreign.names(document, format="exim") == []


def test_lines_are_continued_and_comments_left_out(tmp_path):
    text = (
        "BEGIN  Retry\n\n  * \\\n  # between\n    *  F,1h,10m; \\\n\tF,2h,20m  \\"
        "\n\n  x * F,1h,1m \\"
    )
    path = configuration(tmp_path, text)
    assert foreign.names(path) == ["*", "x"]
    reading = foreign.read(path, "*", closest=True)
    assert reading.policy == read("F,1h,10m; F,2h,20m").policy
    assert "line 3: " in reading.differences[0]


def test_patterns_and_senders_may_be_quoted(tmp_path):
    text = 'begin retry\n"^a b\\"@" timeout senders = "x : y" F,1h,1m\nz * senders=:\n'
    path = configuration(tmp_path, text)
    assert foreign.names(path) == ['"^a b\\"@"', "z"]
    reading = foreign.read(path, '"^a b\\"@"', closest=True)
    place = f"{path}, line 2: retry[0]"
    assert reading.notes == (f'{place}.senders: for messages of "x : y" alone',)


def test_a_line_without_rules_retries_nothing(tmp_path):
    path = configuration(tmp_path, "begin retry\nx *\n")
    reading = foreign.read(path)
    assert reading.policy == Policy(max_attempts=1, on=Exception)
    note = "retry[0].rules: empty, and so nothing is retried"
    assert reading.notes == (f"{path}, line 2: {note}",)


def test_a_line_within_a_condition_is_noted(tmp_path):
    text = (
        "begin retry\n.ifdef SLOW\nslow * F,1d,1h\n.else\nfast * F,1h,1m\n"
        ".endif\n.include /x\n* * F,2h,15m\n"
    )
    path = configuration(tmp_path, text)
    told = "rules: only where its .ifdef or .ifndef holds"
    for name, notes in (("slow", 1), ("fast", 1), ("*", 0)):
        found = foreign.read(path, name, closest=True).notes
        assert [each.endswith(told) for each in found] == [True] * notes


def test_the_longest_interval_of_the_main_section_applies(tmp_path):
    text = "retry_interval_max = 2h\n" + CONFIGURATION
    path = configuration(tmp_path, text)
    found = foreign.read(path, "*", closest=True).policy
    rules = [("F", 7200, 900), ("G", 57_600, 3600, 1.5), ("F", 345_600, 21_600)]
    assert attempts(found) == attempts_of_exim(rules, longest=7200)
    assert found == read(DEFAULT, retry_interval_max="2h").policy
    # Exim itself caps it at a day.
    assert read("F,8d,2d").policy.schedule == s.constant(86_400)


def test_errors_of_exim_are_what_the_user_says(tmp_path):
    path = configuration(tmp_path, "begin retry\n* Quota_7d F,1h,1m\n")
    reading = foreign.read(path, closest=True)
    assert reading.policy.on is Exception
    assert "error: quota_7d is of Exim; errors=" in reading.differences[0]
    reading = foreign.read(path, closest=True, errors={"quota_7d": BlockingIOError})
    assert reading.policy.on is BlockingIOError
    assert len(reading.differences) == 1


def test_random_delays_are_a_difference():
    reading = read("H,1d,10m,2")
    assert reading.policy == read("G,1d,10m,2").policy
    told = "retry: the delays of H are random; the policy waits the longest of them"
    assert reading.differences[1] == told
    # The last delay is shorter than the first of H, and twice that is longer.
    schedule = read("F,1m,50s; H,1d,1m,2").policy.schedule
    delays = [schedule.bounds(retry)[0] for retry in (1, 2, 3, 4)]
    assert delays == [50, 50, 100, 200]


times = st.integers(1, 3000)
rules = st.one_of(
    st.tuples(st.just("F"), times, times),
    st.tuples(st.just("G"), times, times, st.sampled_from([1, 1.125, 1.5, 2, 7])),
)


@pytest.mark.thorough
@given(st.lists(rules, min_size=1, max_size=4))
def test_attempts_are_those_of_its_code(rules):
    written = [
        f"{letter},{cutoff}s, {interval}s" + "".join(f",{each}" for each in factor)
        for letter, cutoff, interval, *factor in rules
    ]
    assert attempts(read(";".join(written)).policy) == attempts_of_exim(rules)


def test_a_very_long_rule_is_read_at_once():
    assert read("F,52w,1s").policy.schedule == s.constant(1)
    policy = read("f,1h,1s; G,3000w,1s,1.001").policy
    assert policy.schedule == s.constant(1).take(3601).then(s.constant(1))


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("* * F,2h", "rules must be written as in F,2h,15m; G,16h,1h,1.5, got 'F,2h'"),
        ("* * F,2h,15m,2", "rules must be written as in"),
        ("* * F,2h ,15m", "rules must be written as in"),
        ("* * F,2h,15m F,3h,1h", "rules must be written as in"),
        ("* * G,2h,15m", "rules must be written as in"),
        ("* * X,2h,15m", "rules must be written as in"),
        ("* * F,2h,15m; RULES", "write out the macro RULES"),
        ("* * MY_RULES", "write out the macro MY_RULES"),
        ("* * F,2x,15m", "cutoff must be a time > 0 such as 1h30m (w, d, h, m, s)"),
        ("* * F,2h,0m", "interval must be a time > 0"),
        ("* * F,2h,15", "interval must be a time > 0"),
        ("* * F,9999w,15m", "cutoff must be a time > 0"),
        ("* * G,2h,15m,0.9", "factor must be a number >= 1 such as 1.5, got '0.9'"),
        ("* * G,2h,15m,1.2.3", "factor must be a number >= 1 such as 1.5"),
        ("*", "error must be an error of Exim after the pattern, such as * or refused"),
        ("* F,2h,15m", "error must be an error of Exim after the pattern"),
        ("* timeout_x F,2h,15m", "error must be an error of Exim after the pattern"),
    ],
)
def test_bad_rules_are_refused(tmp_path, rules, message):
    assert message in refused(tmp_path, rules)


@pytest.mark.parametrize("factor", ["1.5", "1.25", "1.2345", "2."])
def test_factors_have_three_digits(factor):
    schedule = read(f"G,1w,1000s,{factor}").policy.schedule
    assert schedule.bounds(2)[0] == int(float(factor) * 1000)
