"""Transient errors of smtplib, on a real mail server."""

import errno
import smtplib
import socket
import ssl
from email.message import EmailMessage

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult

from retrykit import state_of
from retrykit._internal.connection_errors import is_connection_error
from retrykit.integrations import smtplib as retries
from tests._support.fault_proxy import proxy, refused, through
from tests._support.ports import free_port

QUICK = retries.policy(schedule=[0, 0])


class MailServer:
    """A mail server on a free port, with scripted replies.

    Attributes:
        replies: The next replies to a command, by its name; then all are positive.
        disconnects: How often it accepts a message and closes the connection.
        messages: The accepted messages.
    """

    def __init__(self):
        self.replies = {}
        self.disconnects = 0
        self.messages = []
        self.controller = Controller(
            self,
            hostname="127.0.0.1",
            port=free_port(),
            authenticator=self._authenticate,
            auth_require_tls=False,
        )

    @property
    def port(self):
        return self.controller.port

    def script(self, command, reply):
        """Give this reply in the next attempt, in which a client logs in twice."""
        self.replies[command] = [reply] * (2 if command == "AUTH" else 1)

    async def handle_MAIL(self, server, session, envelope, address, options):  # noqa: N802
        envelope.mail_from = address
        return self._next_reply("MAIL")

    async def handle_RCPT(self, server, session, envelope, address, options):  # noqa: N802
        reply = self._next_reply("RCPT")
        if reply.startswith("250"):
            envelope.rcpt_tos.append(address)
        return reply

    async def handle_DATA(self, server, session, envelope):  # noqa: N802
        reply = self._next_reply("DATA")
        if reply.startswith("250"):
            self.messages.append((envelope.rcpt_tos, envelope.content))
            if self.disconnects:
                self.disconnects -= 1
                server.transport.close()
        return reply

    def _authenticate(self, server, session, envelope, mechanism, data):
        message = self._next_reply("AUTH")
        success = message.startswith("250")
        return AuthResult(
            success=success, handled=False, message=None if success else message
        )

    def _next_reply(self, command):
        scripted = self.replies.get(command)
        return scripted.pop(0) if scripted else "250 OK"


@pytest.fixture
def server():
    server = MailServer()
    server.controller.start()
    yield server
    server.controller.stop(no_assert=True)


def build_message(recipients="b@example.com"):
    message = EmailMessage()
    message["From"], message["To"] = "a@example.com", recipients
    message["Message-ID"] = "<1@example.com>"
    message.set_content("Hello.")
    return message


def send(port, recipients="b@example.com", *, login=False):
    with smtplib.SMTP("127.0.0.1", port, timeout=5) as client:
        if login:
            client.login("user", "password")
        return client.send_message(build_message(recipients))


GREYLISTED = "451 4.7.1 Greylisted, try again later"


@pytest.mark.parametrize(
    ("command", "reply"),
    [
        ("RCPT", GREYLISTED),
        ("RCPT", "450 4.2.1 Mailbox busy"),
        ("MAIL", "452 4.3.1 Insufficient system storage"),
        ("MAIL", "421 4.3.2 Shutting down"),
        ("DATA", "451 4.3.0 Local error in processing"),
        ("AUTH", "454 4.7.0 Temporary authentication failure"),
    ],
)
def test_a_transient_reply_is_retried(server, command, reply):
    server.script(command, reply)
    outcome = QUICK.run(lambda: send(server.port, login=True))
    assert (outcome.unwrap(), outcome.state.attempt) == ({}, 2)
    assert len(server.messages) == 1


@pytest.mark.parametrize(
    ("command", "reply"),
    [
        ("RCPT", "550 5.1.1 Mailbox unavailable"),
        ("MAIL", "553 5.1.8 Sender address rejected"),
        ("DATA", "554 5.7.1 Rejected as spam"),
        ("AUTH", "535 5.7.8 Authentication credentials invalid"),
    ],
)
def test_a_permanent_reply_is_not_retried(server, command, reply):
    server.script(command, reply)
    with pytest.raises(smtplib.SMTPException, match=reply[4:]) as caught:
        QUICK.call(lambda: send(server.port, login=True))
    assert state_of(caught.value).attempt == 1
    assert server.messages == []


def test_all_rejected_recipients_must_be_transient(server):
    server.replies["RCPT"] = [GREYLISTED, "550 5.1.1 Mailbox unavailable"]
    both = "b@example.com, c@example.com"
    with pytest.raises(smtplib.SMTPRecipientsRefused) as caught:
        QUICK.call(lambda: send(server.port, both))
    assert state_of(caught.value).attempt == 1
    server.replies["RCPT"] = [GREYLISTED, GREYLISTED]
    assert QUICK.call(lambda: send(server.port, both)) == {}
    [(recipients, _)] = server.messages
    assert recipients == ["b@example.com", "c@example.com"]


def test_a_message_for_some_recipients_is_not_sent_again(server):
    server.replies["RCPT"] = ["250 OK", GREYLISTED]
    rejected = QUICK.call(lambda: send(server.port, "b@example.com, c@example.com"))
    assert rejected == {"c@example.com": (451, GREYLISTED[4:].encode())}
    assert len(server.messages) == 1


def test_a_connection_lost_after_the_text_may_deliver_it_twice(server):
    server.disconnects = 1
    assert QUICK.call(lambda: send(server.port)) == {}
    first, second = server.messages
    assert first == second
    assert b"Message-ID: <1@example.com>" in first[1]


def test_a_refused_connection_is_retried(server):
    with proxy(server.port, refused(), through()) as faults:
        policy = QUICK.replace(observers={"attempt_failed": lambda _: faults.listen()})
        outcome = policy.run(lambda: send(faults.port))
    assert (outcome.unwrap(), outcome.state.attempt) == ({}, 2)


def test_no_recipients_is_permanent():
    assert not retries.transient(smtplib.SMTPRecipientsRefused({}))


LOST = [
    *(ConnectionRefusedError(), BrokenPipeError(), TimeoutError(), socket.gaierror()),
    *(ssl.SSLEOFError(), ssl.SSLZeroReturnError()),
    OSError(errno.EHOSTUNREACH, "No route to host"),
    # As asyncio raises it for a host with several addresses.
    OSError("Multiple exceptions: [Errno 111] Connect call failed, [Errno 111] ..."),
]
OTHERS = [
    *(ssl.SSLCertVerificationError(), ssl.SSLError(), FileNotFoundError(), OSError()),
    OSError("the text of somebody else"),
    *(smtplib.SMTPException(), smtplib.SMTPNotSupportedError(), ValueError()),
    *(None, "451"),
]


@pytest.mark.parametrize("error", LOST + OTHERS, ids=repr)
def test_errors_of_the_connection(error):
    assert retries.transient(error) is is_connection_error(error) is (error in LOST)


@pytest.mark.parametrize("code", [-1, 399, 400, 499, 500, "451", None])
def test_codes_of_replies(code):
    error = smtplib.SMTPConnectError(code, "reply")
    assert retries.transient(error) is (code in {400, 499})
