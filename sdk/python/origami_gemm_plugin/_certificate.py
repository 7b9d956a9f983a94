"""The one-time certificate with which a plugin identifies itself to the host: ECDSA on P-256, for localhost,
self-signed. The command openssl makes it."""

from __future__ import annotations

import re
import ssl
import subprocess

_DAYS = 3650  # longer than any process; the key is lost with this process
_EXTENSIONS = (
    "subjectAltName=DNS:localhost", "basicConstraints=critical,CA:TRUE", "keyUsage=critical,digitalSignature,keyCertSign",
    "extendedKeyUsage=serverAuth,clientAuth",
)


def make() -> tuple[bytes, bytes, bytes]:
    """The private key in PEM, the certificate in PEM, and the certificate in DER."""
    # Through a pipe, so that the key is in no file.
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-sha256",
               "-batch", "-subj", "/CN=localhost", "-days", str(_DAYS), "-keyout", "/dev/stdout", "-out", "/dev/stdout"]
    for extension in _EXTENSIONS:
        command += ["-addext", extension]
    try:
        out = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True).stdout
    except FileNotFoundError as error:
        raise RuntimeError("a certificate cannot be made: install the command openssl") from error
    except subprocess.CalledProcessError as error:
        raise RuntimeError(f"openssl makes no certificate: {error.stderr.decode(errors='replace').strip()}") from error
    key, certificate = (
        re.search(b"-----BEGIN " + what + b"-----.*?-----END " + what + b"-----\n", out, re.DOTALL)
        for what in (b"PRIVATE KEY", b"CERTIFICATE")
    )
    if not key or not certificate:
        raise RuntimeError("openssl makes no certificate: it printed something else")
    return key[0], certificate[0], ssl.PEM_cert_to_DER_cert(certificate[0].decode())
