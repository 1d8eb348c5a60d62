"""What members of a cluster show each other: one certificate, made for it, from one authority, made for it too.

    ca.pem, member.pem, member-key.pem      in one folder, for every member (service/certificates.py makes them)

Whoever does not hold a certificate of this authority can neither connect nor be connected to. Names of hosts are
not compared: members come and go, and to hold the certificate is to be one.
"""

import ssl
from dataclasses import dataclass
from pathlib import Path

from distributed.security import Security

from workers.errors import GangUnavailable

AUTHORITY, CERTIFICATE, KEY = "ca.pem", "member.pem", "member-key.pem"


def security(folder: Path) -> Security:
    """Dask's settings for a member with the certificates of a folder: nothing is said in the clear.

    Errors: GangUnavailable names the file that is missing.
    """
    for name in (AUTHORITY, CERTIFICATE, KEY):
        try:
            (folder / name).open("rb").close()
        except OSError as error:
            raise GangUnavailable(
                f"certificate {folder / name}: {error.strerror}; `edgewise init` makes the members' certificates"
            ) from None
    certificate, key = str(folder / CERTIFICATE), str(folder / KEY)
    roles = ("client", "scheduler", "worker")
    files = {f"tls_{role}_{kind}": path for role in roles for kind, path in (("cert", certificate), ("key", key))}
    return Security(
        require_encryption=True, tls_ca_file=str(folder / AUTHORITY), tls_min_version=ssl.TLSVersion.TLSv1_3, **files
    )


@dataclass(frozen=True)
class Contexts:
    """How a member calls the others of its gang and how it answers them, both with the certificates of the cluster."""

    calling: ssl.SSLContext
    listening: ssl.SSLContext


def contexts(members: Security, address: str) -> Contexts | None:
    """Those of a Dask worker's settings; None where it listens at `address` in the clear: so does its gang then."""
    if not address.startswith("tls://"):
        return None
    calling = members.get_connection_args("worker")["ssl_context"]
    listening = members.get_listen_args("worker")["ssl_context"]
    return Contexts(calling, listening)
