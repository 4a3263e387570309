"""Sequence pictures show the messages that a scenario sends, in virtual time."""

import asyncio
import re

import pytest

from docs._site.drawing import in_dark
from docs._site.sequence_drawing import draw_sequence
from docs._site.sequences import SCENARIOS, Sequence, SequenceError, record
from retrykit import observe, retry
from retrykit.testing import ScriptedFunction, virtual_time
from tests._support.documents import PAGES

pytestmark = pytest.mark.thorough

NAMES = sorted(path.stem for path in SCENARIOS.glob("*.py"))
PARTIES = ("client", "retrykit", "server")
UNSCRIPTED = """
from retrykit.testing import ScriptedFunction

PARTIES = ()
def main(_):
    ScriptedFunction([])()
"""


@pytest.fixture
def sequence():
    with virtual_time() as clock:
        recorded = Sequence(clock, PARTIES)
        with observe(recorded.on_event):
            yield recorded


def texts(sequence):
    return [str(step) for step in sequence.steps]


def test_calls_results_and_errors_are_messages_with_their_times(sequence, quiet):
    server = ScriptedFunction([ConnectionError, 7])
    send = sequence.between("retrykit", "server", server, "GET {0}", "status {}".format)
    ask = retry(on=ConnectionError, schedule=["1s"])(send)
    assert sequence.between("client", "retrykit", ask, "ask({0})")("x") == 7
    assert texts(sequence) == [
        "0 s  client -> retrykit: ask(x)",
        "0 s  retrykit -> server: GET x",
        "0 s  server -> retrykit: ConnectionError",
        "0 s  retrykit: waits 1 s",
        "1 s  retrykit -> server: GET x",
        "1 s  server -> retrykit: status 7",
        "1 s  retrykit -> client: 7",
    ]


def test_a_note_belongs_to_the_party_with_the_name_of_the_call(sequence):
    def fail():
        raise ValueError

    for name in ("client", "fail"):
        with pytest.raises(ValueError):
            retry(on=OSError, name=name)(fail)()
    assert texts(sequence) == [
        "0 s  client: gives up: the error is not retryable",
        "0 s  retrykit: gives up: the error is not retryable",
    ]


def test_a_call_without_a_party_has_no_notes():
    with virtual_time() as clock:
        recorded = Sequence(clock, ("store", "worker"))
        with observe(recorded.on_event), pytest.raises(ValueError):
            retry(on=OSError)(ScriptedFunction([ValueError]))()
    assert recorded.steps == []


def test_a_cancelled_call_is_a_message_of_its_caller(sequence):
    async def hang():
        await asyncio.sleep(60)

    async def limited():
        async with asyncio.timeout(2):
            await sequence.between("client", "server", hang, "GET")()

    async def answer():
        return "yes"

    with asyncio.Runner(loop_factory=sequence.clock.new_event_loop) as runner:
        runner.run(sequence.between("client", "server", answer, "ready?")())
        with pytest.raises(TimeoutError):
            runner.run(limited())
    assert texts(sequence) == [
        "0 s  client -> server: ready?",
        "0 s  server -> client: yes",
        "0 s  client -> server: GET",
        "2 s  client -> server: cancel",
    ]


def test_the_items_of_a_stream_and_its_end_are_messages(sequence):
    def broken():
        yield 1
        raise ConnectionError

    assert [*sequence.items("server", "client", iter([5]))] == [5]
    with pytest.raises(ConnectionError):
        [*sequence.items("server", "client", broken())]
    assert [step.text for step in sequence.steps] == [
        "5",
        "end",
        "1",
        "ConnectionError",
    ]


def test_a_message_to_somebody_else_is_an_error(sequence):
    with pytest.raises(SequenceError, match="got 'client' and 'nobody'"):
        sequence.message("client", "nobody", "hello")


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (None, "there is no scenario 'scene'"),
        ("1 / 0", "'scene' failed: ZeroDivisionError"),
        ("PARTIES = ()", "'scene' failed: KeyError: 'main'"),
        ("PARTIES = ()\ndef main(_): raise OSError('down')", "OSError: down"),
        (UNSCRIPTED, "'scene' failed: ScriptError"),
        ("PARTIES = ()\ndef main(_): pass", "'scene' sent no message"),
    ],
    ids=["no file", "fails at once", "no main", "fails", "out of script", "silent"],
)
def test_a_scenario_without_a_sequence_is_an_error(tmp_path, program, message):
    if program is not None:
        (tmp_path / "scene.py").write_text(program, "utf-8")
    with pytest.raises(SequenceError, match=message):
        record("scene", tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_a_drawing_has_each_party_and_numbers_each_message(name):
    sequence = record(name)
    svg = draw_sequence(sequence)
    written = re.findall("<text[^>]*>([^<]*)<", svg)
    messages = [step for step in sequence.steps if step.kind != "note"]
    assert [text for text in written if text.isdigit()] == [
        str(number) for number in range(1, len(messages) + 1)
    ]
    assert written[: len(sequence.parties)] == [*sequence.parties]
    colors = {*re.findall("#[0-9a-f]{6}", svg)}
    assert colors & {*re.findall("#[0-9a-f]{6}", in_dark(svg))} == set()


def test_a_drawing_escapes_its_texts(sequence):
    sequence.message("client", "server", "a < b")
    assert "a &lt; b" in draw_sequence(sequence)


def test_each_scenario_is_on_one_page():
    text = "\n".join(page.read_text("utf-8") for page in PAGES)
    shown = re.findall(r"^```\{sequence\} (\w+)$", text, re.MULTILINE)
    assert sorted(shown) == NAMES


@pytest.mark.parametrize(
    ("name", "server", "requests"),
    [
        ("circuit_breaker", "server", 3),
        ("retry_budget", "server", 5),
        ("nested_retries", "server", 3),
        ("streams", "server", 2),
        ("durable_jobs", "mail server", 3),
        ("timeouts", "server", 4),
        ("idempotency", "server", 2),
        ("hedging", "server 2", 1),
    ],
)
def test_a_scenario_shows_what_its_page_says(name, server, requests):
    sent = [step for step in record(name).steps if step.target == server != step.source]
    assert len(sent) == requests
