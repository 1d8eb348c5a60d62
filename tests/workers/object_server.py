"""A server of the S3 protocol, as much of it as pyarrow's client speaks, that can be made to fail at a place."""

import contextlib
import itertools
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.sax.saxutils import escape

import pytest

BUCKET = "bucket"
NAMESPACE = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'


class Objects:
    """What a server holds. refuse: the (method, part of the query) pairs that it answers with an error, "*": any query;
    asked: the calls so far."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}
        self.parts: dict[str, dict[int, bytes]] = {}
        self.refuse: set[tuple[str, str]] = set()
        self.asked: list[tuple[str, str]] = []
        self.lock = threading.Lock()
        self.numbers = itertools.count()

    def refuses(self, method: str, query: dict[str, str]) -> bool:
        return any(method == each and (part == "*" or part in query) for each, part in self.refuse)

    def list(self, prefix: str, delimiter: str) -> str:
        """Objects below a prefix, those in deeper folders as the folder."""
        keys, folders = [], set()
        for key in sorted(key for key in self.held if key.startswith(prefix)):
            rest, found, _ = key.removeprefix(prefix).partition(delimiter) if delimiter else (key, "", "")
            if found:
                folders.add(prefix + rest + delimiter)
            else:
                keys.append(key)
        contents = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(self.held[key])}</Size>"
            "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
            for key in keys
        )
        common = "".join(
            f"<CommonPrefixes><Prefix>{escape(each)}</Prefix></CommonPrefixes>" for each in sorted(folders)
        )
        count = f"<KeyCount>{len(keys) + len(folders)}</KeyCount>"
        content = f"<IsTruncated>false</IsTruncated>{count}{contents}{common}"
        return f"<ListBucketResult {NAMESPACE}>{content}</ListBucketResult>"


class Answers(BaseHTTPRequestHandler):
    """One call."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # it would hold every second packet back for 40 ms
    objects: Objects

    def log_message(self, *_: Any) -> None:
        """Nobody reads it."""

    def answer(self, status: int, content: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def body(self) -> bytes:
        """What was sent, out of the chunks of HTTP and those of the protocol."""
        if self.headers.get("Transfer-Encoding") == "chunked":
            content = b""
            while size := int(self.rfile.readline().partition(b";")[0], 16):
                content += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if "aws-chunked" not in self.headers.get("Content-Encoding", ""):
            return content
        parts = []
        while content:
            size_line, _, content = content.partition(b"\r\n")
            size = int(size_line.partition(b";")[0], 16)
            if not size:
                break
            parts.append(content[:size])
            content = content[size + 2 :]
        return b"".join(parts)

    def handle_call(self) -> None:
        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
        content = self.body()
        with self.objects.lock:
            self.objects.asked.append((self.command, parts.query))
            if self.objects.refuses(self.command, query):
                self.answer(403, b"<Error><Code>QuotaExceeded</Code><Message>the bucket is full</Message></Error>")
            elif bucket != BUCKET:
                self.answer(404, b"<Error><Code>NoSuchBucket</Code></Error>")
            else:
                getattr(self, f"on_{self.command.lower()}")(key, query, content)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_call  # noqa: N815

    def on_get(self, key: str, query: dict[str, str], _: bytes) -> None:
        if "list-type" in query:
            listed = self.objects.list(query.get("prefix", ""), query.get("delimiter", ""))
            self.answer(200, listed.encode(), Content_Type="application/xml")
        elif key not in self.objects.held:
            self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        elif wanted := re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", "")):
            held = self.objects.held[key]
            start, stop = int(wanted[1]), min(int(wanted[2]) + 1, len(held))
            self.answer(206, held[start:stop], Content_Range=f"bytes {start}-{stop - 1}/{len(held)}")
        else:
            self.answer(200, self.objects.held[key])

    def on_head(self, key: str, _query: dict[str, str], _: bytes) -> None:
        held = self.objects.held.get(key) if key else b""
        if held is None:
            self.answer(404)
        else:
            self.answer(200, held, Last_Modified="Thu, 01 Jan 2026 00:00:00 GMT", x_amz_bucket_region="here")

    def on_put(self, key: str, query: dict[str, str], content: bytes) -> None:
        if "uploadId" in query:
            self.objects.parts[query["uploadId"]][int(query["partNumber"])] = content
        else:
            self.objects.held[key] = content
        self.answer(200, ETag='"tag"')

    def on_post(self, key: str, query: dict[str, str], content: bytes) -> None:
        if "uploads" in query:
            upload = f"upload{next(self.objects.numbers)}"
            self.objects.parts[upload] = {}
            kind = "InitiateMultipartUploadResult"
            text = f"<{kind} {NAMESPACE}><UploadId>{upload}</UploadId></{kind}>"
        elif "delete" in query:
            for each in re.findall(r"<Key>(.*?)</Key>", content.decode()):
                self.objects.held.pop(each, None)
            text = f"<DeleteResult {NAMESPACE}></DeleteResult>"
        else:
            parts = self.objects.parts.pop(query["uploadId"])
            self.objects.held[key] = b"".join(parts[number] for number in sorted(parts))
            text = f"<CompleteMultipartUploadResult {NAMESPACE}><ETag>tag</ETag></CompleteMultipartUploadResult>"
        self.answer(200, text.encode(), Content_Type="application/xml")

    def on_delete(self, key: str, query: dict[str, str], _: bytes) -> None:
        if "uploadId" in query:
            self.objects.parts.pop(query["uploadId"], None)
        else:
            self.objects.held.pop(key, None)
        self.answer(204)


CREDENTIALS = {"AWS_ACCESS_KEY_ID": "an-id", "AWS_SECRET_ACCESS_KEY": "a-secret", "AWS_EC2_METADATA_DISABLED": "true"}


def credentials(patch: pytest.MonkeyPatch) -> None:
    """As a member finds them in its environment; nobody is asked for others."""
    for name, value in CREDENTIALS.items():
        patch.setenv(name, value)


@contextlib.contextmanager
def object_server() -> Iterator[tuple[str, Objects]]:
    """A server on a free port: the URI of its bucket, and what it holds."""
    objects = Objects()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Answers,), {"objects": objects}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        place = f"127.0.0.1:{server.server_port}"
        yield f"s3://{BUCKET}/kept?region=here&scheme=http&endpoint_override={place}", objects
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
