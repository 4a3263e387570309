"""A server on 127.0.0.1 with a certificate that no client trusts."""

import contextlib
import ssl
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests._support.socket_server import SocketServer

__all__ = ["self_signed", "serve_tls"]


def self_signed(folder):
    """Write a certificate and its key to a file, and return its path."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key())
    builder = builder.serial_number(1).not_valid_before(now)
    builder = builder.not_valid_after(now + timedelta(days=1))
    encoding = serialization.Encoding.PEM
    secret = key.private_bytes(
        encoding,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path = folder / "self-signed.pem"
    path.write_bytes(secret + builder.sign(key, hashes.SHA256()).public_bytes(encoding))
    return path


class _Server(SocketServer):
    def __init__(self, path):
        super().__init__()
        self.url = f"https://127.0.0.1:{self.port}"
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(path)

    def handler_for(self, connection):
        return lambda: self._shake_hands(connection.sock)

    def _shake_hands(self, sock):
        with contextlib.suppress(OSError):
            self._context.wrap_socket(sock, server_side=True).close()


def serve_tls(path):
    """Return a server that listens; a context manager."""
    server = _Server(path)
    server.listen()
    return server
