"""One file and a few fields as multipart/form-data, the way upload endpoints want it."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class File:
    field: str
    name: str
    media_type: str
    data: bytes


def multipart(file: File, fields: Mapping[str, str]) -> tuple[str, bytes]:
    """The Content-Type and the body. The boundary is drawn from the content, so that equal uploads are equal bytes."""
    boundary = "citeloop" + hashlib.sha256(file.data).hexdigest()[:32]
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in fields.items()
    ]
    head = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="{file.field}"; filename="{file.name}"\r\n'
        f"Content-Type: {file.media_type}\r\n\r\n"
    )
    body = b"".join([*parts, head.encode(), file.data, f"\r\n--{boundary}--\r\n".encode()])
    return f"multipart/form-data; boundary={boundary}", body
