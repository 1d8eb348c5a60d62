"""Makes the certificates by which the members of a cluster know each other.

The authority's own key signs once and is never kept: nobody can make another member's certificate later. To
replace certificates, make all of them anew and restart every member.
"""

import datetime
import os
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from workers.tls import AUTHORITY, CERTIFICATE, KEY

YEARS = 10  # a private authority of one cluster: it ends with the cluster
SKEW = datetime.timedelta(hours=1)  # members' clocks may differ a little


def make_certificates(folder: Path) -> bool:
    """Write authority, certificate and key into the folder; False if they are there already.

    Errors: OSError.
    """
    if all((folder / name).exists() for name in (AUTHORITY, CERTIFICATE, KEY)):
        return False
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    authority_key, member_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority = _authority(authority_key)
    member = _member(member_key, authority, authority_key)
    private = member_key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    write_secret(folder / KEY, private)
    write_secret(folder / CERTIFICATE, member.public_bytes(serialization.Encoding.PEM))
    write_secret(folder / AUTHORITY, authority.public_bytes(serialization.Encoding.PEM))
    return True


def write_secret(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Write a file that only its owner can read (or as `mode` says), whole or not at all. Errors: OSError."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def _authority(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    name = _name("edgewise cluster authority")
    builder = _builder(name, name, key.public_key())
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(signs_certificates=True), critical=True)
    return builder.sign(key, hashes.SHA256())


def _member(
    key: ec.EllipticCurvePrivateKey, authority: x509.Certificate, authority_key: ec.EllipticCurvePrivateKey
) -> x509.Certificate:
    # Every member calls and is called, so its certificate serves both ways.
    both = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    builder = _builder(_name("edgewise cluster member"), authority.subject, key.public_key())
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_usage(signs_certificates=False), critical=True)
    builder = builder.add_extension(both, critical=False).add_extension(issuer, critical=False)
    return builder.sign(authority_key, hashes.SHA256())


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - SKEW).not_valid_after(now + datetime.timedelta(days=365 * YEARS))
    return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
