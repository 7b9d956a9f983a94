"""The one-time certificate with which a plugin identifies itself to the host: ECDSA on P-256, for localhost,
self-signed."""

from __future__ import annotations

import datetime
import re
import ssl
import subprocess

_LIFE = datetime.timedelta(days=3650)  # longer than any process; the key is lost with this process


def make() -> tuple[bytes, bytes, bytes]:
    """The private key in PEM, the certificate in PEM, and the certificate in DER."""
    try:
        key, certificate = _with_cryptography()
    except ImportError:  # as in images for machine learning, on machines without a network
        key, certificate = _with_openssl()
    return key, certificate, ssl.PEM_cert_to_DER_cert(certificate.decode())


def _with_cryptography() -> tuple[bytes, bytes]:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    usages = dict.fromkeys(
        (
            "content_commitment",
            "data_encipherment",
            "key_agreement",
            "key_encipherment",
            "crl_sign",
            "encipher_only",
            "decipher_only",
        ),
        False,
    )
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(seconds=30))
        .not_valid_after(now + _LIFE)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.KeyUsage(digital_signature=True, key_cert_sign=True, **usages), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.SERVER_AUTH, x509.ExtendedKeyUsageOID.CLIENT_AUTH]),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    return (
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
        certificate.public_bytes(serialization.Encoding.PEM),
    )


def _with_openssl() -> tuple[bytes, bytes]:
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-sha256",
        "-batch",
        "-subj",
        "/CN=localhost",
        "-days",
        str(_LIFE.days),
        "-keyout",
        "/dev/stdout",
        "-out",
        "/dev/stdout",
    ]  # through a pipe, so that the key is in no file
    for extension in (
        "subjectAltName=DNS:localhost",
        "basicConstraints=critical,CA:TRUE",
        "keyUsage=critical,digitalSignature,keyCertSign",
        "extendedKeyUsage=serverAuth,clientAuth",
    ):
        command += ["-addext", extension]
    try:
        out = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True).stdout
    except FileNotFoundError as error:
        raise RuntimeError(
            "a certificate cannot be made: install the Python package cryptography, or the command openssl"
        ) from error
    except subprocess.CalledProcessError as error:
        raise RuntimeError(f"openssl makes no certificate: {error.stderr.decode(errors='replace').strip()}") from error
    key, certificate = (
        re.search(b"-----BEGIN " + what + b"-----.*?-----END " + what + b"-----\n", out, re.DOTALL)
        for what in (b"PRIVATE KEY", b"CERTIFICATE")
    )
    if not key or not certificate:
        raise RuntimeError("openssl makes no certificate: it printed something else")
    return key[0], certificate[0]
