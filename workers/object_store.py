"""Bytes in an object store (S3, Google Cloud Storage, Azure), reached through pyarrow by a URI.

No store is trusted to publish an object whole: Azure shows an empty one before the first byte is there, and pyarrow
closes, that is publishes, also what failed half way. So every put takes a name that was never used, and the name tells
how long the object is; one of another length is not there for any reader. Nothing is ever written over.

    <uri>/<group>/<name>.<bytes>.<random>
"""

import errno
import functools
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

import pyarrow as pa
from pyarrow import fs

# Options of a URI that pyarrow knows and that hold no secret: a URI is passed to members, shown and logged.
OPTIONS = {
    "s3": ("S3FileSystem", {"region", "scheme", "endpoint_override"}),
    "gs": ("GcsFileSystem", {"scheme", "endpoint_override", "retry_limit_seconds", "project_id"}),
    "gcs": ("GcsFileSystem", {"scheme", "endpoint_override", "retry_limit_seconds", "project_id"}),
    "abfs": ("AzureFileSystem", {"enable_tls", "blob_storage_authority", "dfs_storage_authority"}),
    "abfss": ("AzureFileSystem", {"enable_tls", "blob_storage_authority", "dfs_storage_authority"}),
}
WITHOUT_FOLDERS = {"s3", "gcs", "abfs"}  # pyarrow's names of those where a path needs no folder to be made
ATTEMPTS = 4  # of a call to S3, each 3 s if it is silent
GCS_SECONDS = 30
OBJECT = re.compile(r"(?P<name>[^/]+)\.(?P<size>[0-9]+)\.[0-9a-f]{16}")


class Copy(NamedTuple):
    """A whole object. written: when, as the store tells it (0: it does not)."""

    path: str
    size: int
    written: int


@dataclass(frozen=True)
class ObjectStore:
    """Bytes under a group and a name, below a path of a file system of pyarrow. `place` names it in messages.

    Errors, of every method: OSError.
    """

    files: Any = field(repr=False)
    path: str
    place: str

    def put(self, group: str, name: str, content: bytes | memoryview) -> None:
        """Keep the bytes, whole or not at all, then drop what was kept under the name before."""
        path = f"{self.path}/{group}/{name}.{len(content)}.{secrets.token_hex(8)}"
        with self._only_os_errors("write"):
            if self.files.type_name not in WITHOUT_FOLDERS:
                self.files.create_dir(f"{self.path}/{group}", recursive=True)
            before = self._copies(group).get(name, [])
            try:
                self._write(path, content)
                # One that is not there at all was dropped by another writer, for something newer.
                if any(info.path == path and info.size != len(content) for info in self._listed(group)):
                    raise OSError(f"{path} is not whole after it was written")
            except BaseException:
                with suppress(OSError, pa.ArrowException):
                    self.files.delete_file(path)
                raise
            for copy in before:  # and not what another has put meanwhile: each of two writers would drop the other's
                self._drop(copy)

    def names(self, group: str) -> set[str]:
        """The names of a group under which something whole is kept."""
        with self._only_os_errors("list"):
            return set(self._copies(group))

    def get(self, group: str, name: str) -> bytes:
        """The bytes of a name. Errors: FileNotFoundError if there are none."""
        with self._only_os_errors("read"):
            copies = self._copies(group).get(name)
            if not copies:
                raise FileNotFoundError(f"{self.place}/{group} has no {name}")
            newest = max(copies, key=lambda copy: copy.written)
            with self.files.open_input_stream(newest.path, compression=None) as stream:
                content: bytes = stream.read()
        if len(content) != newest.size:
            raise OSError(f"{newest.path} has {newest.size} bytes, and {len(content)} could be read")
        return content

    def delete(self, group: str, name: str) -> None:
        """Forget a name, known or not."""
        with self._only_os_errors("delete"):
            for copy in self._copies(group).get(name, []):
                self._drop(copy)

    def clear(self, group: str) -> None:
        """Forget a group with all that is in it, also what is not whole."""
        with self._only_os_errors("delete"):
            if self.files.get_file_info(f"{self.path}/{group}").type != fs.FileType.NotFound:
                self.files.delete_dir(f"{self.path}/{group}")

    def _write(self, path: str, content: bytes | memoryview) -> None:
        stream = self.files.open_output_stream(path, compression=None)
        try:
            stream.write(content)
        except BaseException:
            # It would be closed anyhow when it is collected, perhaps after the half of it was deleted.
            with suppress(OSError, pa.ArrowException):
                stream.close()
            raise
        stream.close()

    def _listed(self, group: str) -> list[Any]:
        """What there is in a group, whole or not."""
        infos: list[Any] = self.files.get_file_info(fs.FileSelector(f"{self.path}/{group}", allow_not_found=True))
        return infos

    def _copies(self, group: str) -> dict[str, list[Copy]]:
        return whole(self._listed(group))

    def _drop(self, copy: Copy) -> None:
        with suppress(FileNotFoundError):  # another writer dropped it
            self.files.delete_file(copy.path)

    @contextmanager
    def _only_os_errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise
        except (OSError, pa.ArrowException) as error:
            number = getattr(error, "errno", None) or errno.EIO
            raise OSError(number, f"cannot {what} in {self.place}: {error}") from error


def whole(infos: list[Any]) -> dict[str, list[Copy]]:
    """The whole objects by name. There are two of a name when two writers put it at once, or one died before it dropped
    the older one."""
    found: dict[str, list[Copy]] = {}
    for info in infos:
        match = OBJECT.fullmatch(info.base_name)
        if match and info.type == fs.FileType.File and info.size == int(match["size"]):
            found.setdefault(match["name"], []).append(Copy(info.path, info.size, info.mtime_ns or 0))
    return found


def is_uri(location: str) -> bool:
    """Whether a location is a URI, and not a path of this machine."""
    return "://" in location


def checked_location(location: str) -> str:
    """A URI that this build of pyarrow can open. Nothing is connected to. Errors: ValueError names what is wrong."""
    try:
        parts = urlsplit(location)
        scheme, options = parts.scheme, dict(parse_qsl(parts.query, keep_blank_values=True))
    except ValueError as error:
        raise ValueError(f"the location is no URI: {error}") from None
    # What may be a secret is never shown: the whole location is in no message.
    if scheme == "file":
        if parts.netloc or parts.query or not parts.path.startswith("/"):
            raise ValueError("a file:// location has three slashes and an absolute path, as in file:///mnt/shared")
        return location
    if scheme not in OPTIONS:
        raise ValueError(f"scheme {scheme!r} is not known; use a path, or one of file, {', '.join(OPTIONS)}")
    kind, allowed = OPTIONS[scheme]
    user, at, host = parts.netloc.rpartition("@")
    if ":" in user or (at and scheme not in {"abfs", "abfss"}):
        raise ValueError(f"a {scheme}:// location holds no credentials: set them in the environment of every member")
    if not host:
        raise ValueError(f"a {scheme}:// location names a bucket or container first, as in {scheme}://bucket/folder")
    if unknown := sorted(options.keys() - allowed):
        raise ValueError(f"a {scheme}:// location has no option {unknown[0]!r}; there are {', '.join(sorted(allowed))}")
    if parts.fragment or any(part in {".", ".."} for part in parts.path.split("/")):
        raise ValueError(f"a {scheme}:// location is a bucket and a folder, without '#', '.' and '..'")
    check_built(kind)
    return location


def check_built(kind: str) -> None:
    """Errors: ValueError if this build of pyarrow was made without a file system."""
    try:
        getattr(fs, kind)
    except (ImportError, AttributeError):
        raise ValueError(f"this build of pyarrow ({pa.__version__}) has no {kind}; install one that has") from None


def local_path(location: str) -> str | None:
    """The path of this machine that a location names; None for an object store."""
    if not is_uri(location):
        return location
    parts = urlsplit(location)
    return unquote(parts.path) if parts.scheme == "file" else None


@functools.cache
def object_store(location: str) -> ObjectStore:
    """The store at a URI, by the credentials of this process's environment; made once for each.

    Errors: ValueError (as checked_location); OSError if it cannot be reached.
    """
    checked_location(location)
    place = location.partition("?")[0].rstrip("/")
    try:
        files, path = _opened(location)
    except (OSError, pa.ArrowException) as error:
        raise OSError(errno.EIO, f"cannot open {place}: {error}") from error
    return ObjectStore(files, path.strip("/"), place)


def _opened(location: str) -> tuple[Any, str]:
    """A file system of pyarrow that gives up soon (by default a silent S3 is asked for minutes), and the path in it."""
    parts = urlsplit(location)
    options = dict(parse_qsl(parts.query))
    if parts.scheme != "s3":
        if parts.scheme in {"gs", "gcs"} and "retry_limit_seconds" not in options:
            location += f"{'&' if parts.query else '?'}retry_limit_seconds={GCS_SECONDS}"
        files, path = fs.FileSystem.from_uri(location)
        return files, path
    if "region" not in options and "endpoint_override" not in options:
        options["region"] = fs.resolve_s3_region(parts.netloc)
    retries = fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS)
    return fs.S3FileSystem(retry_strategy=retries, **options), parts.netloc + unquote(parts.path)
