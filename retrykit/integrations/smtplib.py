"""Transient errors of smtplib.

smtplib does not reopen a connection: open it in the retried function::

    from email.message import EmailMessage
    from smtplib import SMTP

    from retrykit import retry
    from retrykit.integrations import smtplib as retries

    @retry(retries.policy(schedule=["1m", "5m", "30m"], max_elapsed="2h"))
    def send(message: EmailMessage):
        with SMTP("mail.example.com", timeout=30) as server:
            server.send_message(message)

If the connection is lost after a message was sent, the server may have accepted it.
Give the message its ``Message-ID`` before the call, so that receivers recognize a copy.
"""

import smtplib
from typing import Any, Final

from retrykit._internal.connection_errors import is_connection_error
from retrykit.integrations._transient import TransientErrors

__all__ = ["policy", "transient"]


class _Transient(TransientErrors):
    """Condition that matches transient errors of smtplib.

    They are replies with a code from 400 to 499, failed and lost connections, and
    timeouts; but not a rejected certificate. If all recipients were rejected, all of
    their codes must be transient.

    Source:
        RFC 5321, "Simple Mail Transfer Protocol", section 4.2.1, 2008.
    """

    def __call__(self, error: Any, /) -> bool:
        if isinstance(error, smtplib.SMTPResponseException):
            return error.smtp_code in _TRANSIENT
        if isinstance(error, smtplib.SMTPRecipientsRefused):
            codes = [code for code, _ in error.recipients.values()]
            return bool(codes) and all(code in _TRANSIENT for code in codes)
        lost = isinstance(error, smtplib.SMTPServerDisconnected)
        return lost or is_connection_error(error)


_TRANSIENT = range(400, 500)

transient: Final = _Transient()
"""Condition for `on`: matches transient errors of smtplib."""

policy: Final = transient.policy
"""Returns a policy with `transient` filled in."""
