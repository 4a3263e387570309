"""Requests on their way to a server, which are events only where it matters."""

from retrykit.simulate import Server
from retrykit.simulate._calls import Attempt
from retrykit.simulate._events import SECOND, Events
from retrykit.simulate._server import SimulatedServer

NETWORK = SECOND // 1000


class Recording:
    """Clients that note when attempts are answered, and send some more then."""

    def __init__(self, events):
        self.events, self.times, self.then = events, [], []

    def answer(self, attempt, failure):
        self.times.append((attempt.sent, self.events.now))
        if self.then:
            self.then.pop()()


def serving(server):
    events = Events(rate=1.0)
    clients = Recording(events)
    return events, clients, SimulatedServer(server, None, events, 1, NETWORK, clients)


def send(server, events):
    server.send(Attempt(None, events.now, events.now + SECOND))


def test_a_request_that_has_to_wait_is_no_event():
    events, clients, server = serving(Server(1))
    for _ in range(5):
        send(server, events)
    # The arrival of the first one, then the end of its service.
    assert (len(events), server.waiting) == (1, 0)
    events.run(2 * NETWORK)
    assert (len(events), server.waiting) == (1, 4)
    events.run(6 * SECOND)
    ends = [NETWORK + SECOND * number for number in range(1, 6)]
    assert clients.times == [(0, end) for end in ends]


def test_a_request_that_an_answer_sends_is_served_after_those_on_their_way():
    events, clients, server = serving(Server(1))
    clients.then = [lambda: send(server, events)]
    on_its_way = SECOND + NETWORK // 2
    events.at(on_its_way, lambda _: send(server, events), None)
    send(server, events)
    events.run(9 * SECOND)
    first = NETWORK + SECOND
    second = on_its_way + NETWORK + SECOND
    expected = [(0, first), (on_its_way, second), (first, second + SECOND)]
    assert clients.times == expected
