"""Reading requests: within limits of bytes, images and time, and never to disk."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from python_multipart.multipart import parse_options_header
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from frugalvae.files import json_object
from frugalvae.formatting import printable, size
from frugalvae.server.refusals import RefusedError
from frugalvae.server.shares import CLIENT, Shares, half

if TYPE_CHECKING:
    from frugalvae.server.settings import Limits

FIELDS = 100  # of a form that are not images
TEXT = 100_000  # bytes of such a field
VALUES = 100_000  # in a body of JSON; reading many more would hold up everybody else
IMAGES = ("images", "image", "file")  # what forms may call them
JSON, FORM = "application/json", "multipart/form-data"
RAW = ("image/", "application/octet-stream")


@dataclass(frozen=True)
class Upload:
    """A picture as it was sent."""

    name: str
    content: bytes


@dataclass
class Sent:
    """What a request brought: pictures, and fields beside them."""

    uploads: list[Upload] = field(default_factory=list)
    fields: dict[str, Any] = field(default_factory=dict)
    is_form: bool = False

    def text(self, *names: str) -> str:
        """A field that has to be there, as text, under the first of its names that is."""
        found = next((self.fields[name] for name in names if name in self.fields), None)
        if isinstance(found, int) and not isinstance(found, bool):
            found = str(found)
        if not isinstance(found, str) or not found.strip():
            given = "not given" if found is None else repr(found)
            raise RefusedError(422, f"{names[0]!r} is {given}; expected a field with a name")
        return found

    def ids(self) -> list[str]:
        """The ids of pictures that were sent before."""
        found = self.fields.get("ids", [])
        found = [found] if isinstance(found, str) else found
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            raise RefusedError(
                422, "'ids' is no list of texts; give the ids that /predict answered"
            )
        return found

    def flag(self, name: str) -> bool:
        """A field that is true or false, and false if it is not there."""
        found = self.fields.get(name, False)
        return found if isinstance(found, bool) else as_flag(name, str(found))


class RequestReader:
    """Reads requests; all that are being worked on together take a bounded number of bytes."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        # One body is allowed, however large bodies may be.
        self.held = Shares("bytes at a time", limits.held, max(half(limits.held), limits.body))

    async def read(self, request: Request) -> Sent:
        """What a request brought, whatever form it has."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != JSON and kind != FORM and not kind.startswith(RAW):
            raise RefusedError(
                415,
                f"the content type is {printable(kind)!r}; expected {FORM} with the field 'images',"
                f" an image such as image/jpeg, or {JSON}",
            )
        body = await self.body(request)
        if kind == FORM:
            return await self.form(request, body)
        if kind == JSON:
            return Sent(fields=self.fields(body))
        query = dict(request.query_params)
        return Sent([Upload(printable(query.get("input", "image")), body)], query)

    async def body(self, request: Request) -> bytes:
        """The bytes of a request."""
        told = request.headers.get("content-length", "0")
        self._check(int(told) if told.isdecimal() else 0)
        content = bytearray()
        try:
            async with asyncio.timeout(self.limits.seconds):
                async for part in request.stream():
                    content += part
                    self.hold(request, len(part))
        except TimeoutError:
            raise RefusedError(
                408, f"the request did not arrive within {self.limits.seconds:g} s"
            ) from None
        except ClientDisconnect:
            raise RefusedError(400, "the request was cut off") from None
        return bytes(content)

    def hold(self, request: Request, count: int) -> None:
        """A request brings so many bytes, or more of them; they are held until it is answered."""
        taken = getattr(request.state, "held", 0) + count
        self._check(taken)
        self.held.take(CLIENT.get(), count)
        request.state.held = taken

    def release(self, request: Request) -> None:
        """A request is answered, and its bytes are not held any more."""
        self.held.give_back(CLIENT.get(), getattr(request.state, "held", 0))

    def _check(self, taken: int) -> None:
        if taken > self.limits.body:
            raise RefusedError(
                413,
                f"the request has more than {size(self.limits.body)}; send fewer images at a time, "
                "or smaller ones",
            )

    def fields(self, body: bytes) -> dict[str, Any]:
        """A JSON object."""
        if sum(map(body.count, (b"[", b"{", b","))) > VALUES:
            raise RefusedError(413, f"the body has more than {VALUES:,} values; send fewer")
        found = json_object(body) if body.strip() else {}
        if found is None:
            raise RefusedError(400, 'the body is no JSON object, such as {"name": "wren"}')
        if b"\\u" in body:
            check_letters(found)
        return found

    async def form(self, request: Request, body: bytes) -> Sent:
        """A form: pictures, and fields beside them; more than one of a name are a list."""
        told = parse_options_header(request.headers["content-type"])[1].get(b"charset", b"utf-8")
        if told.lower() != b"utf-8":
            raise RefusedError(415, f"the charset is {printable(repr(told))}; expected utf-8")

        async def stream() -> AsyncGenerator[bytes, None]:
            yield body

        most = self.limits.images
        parser = MultiPartParser(
            request.headers, stream(), max_files=most, max_fields=FIELDS, max_part_size=TEXT
        )
        parser.spool_max_size = len(body) + 1  # in memory, whatever its size
        try:
            form = await parser.parse()
        except MultiPartException as error:
            if "Too many files" in error.message:
                raise RefusedError(413, f"more than {most} images; send {most} at a time") from None
            raise RefusedError(400, f"the form cannot be read: {error.message}") from None
        sent = Sent(is_form=True)
        for name, value in form.multi_items():
            if isinstance(value, UploadFile):
                if name not in IMAGES:
                    raise RefusedError(422, f"images are in the field {name!r}; expected 'images'")
                sent.uploads.append(
                    Upload(printable(value.filename or "image"), await value.read())
                )
            elif name in sent.fields:
                before = sent.fields[name]
                sent.fields[name] = [*(before if isinstance(before, list) else [before]), value]
            else:
                sent.fields[name] = value
        return sent


def check_letters(fields: dict[str, Any]) -> None:
    """Refuse half of a letter, which JSON can have and no answer or file can."""
    try:
        json.dumps(fields, ensure_ascii=False).encode()
    except RecursionError:  # reading goes a little deeper than writing
        raise RefusedError(400, "the body has too many brackets in each other") from None
    except UnicodeEncodeError:
        raise RefusedError(
            422, r"the body has half of a letter, such as \ud83d without what follows it"
        ) from None


# --------------------------------------------------------------------------- what is asked for


def as_flag(name: str, text: str) -> bool:
    """A text that is true or false.

    >>> as_flag("unknown", "true"), as_flag("unknown", "0")
    (True, False)
    """
    words = {"1": True, "true": True, "yes": True, "on": True}
    words |= {"0": False, "false": False, "no": False, "off": False}
    if text.lower() not in words:
        raise RefusedError(422, f"{name} is {printable(text)!r}; expected true or false")
    return words[text.lower()]


def whole(query: Any, name: str, usual: int, most: int) -> int:
    """A whole number from 1 that is asked for in the address.

    >>> whole({"top": "3"}, "top", 1, 100), whole({}, "top", 1, 100)
    (3, 1)
    """
    text = query.get(name, str(usual))
    value = int(text) if text.isdecimal() and len(text) < 10 else 0
    if not 1 <= value <= most:
        raise RefusedError(
            422, f"{name} is {printable(text)!r}; expected a whole number from 1 to {most}"
        )
    return value


def share(query: Any, name: str, usual: float) -> float:
    """A share that is asked for in the address, such as 0.02 or 2%.

    >>> share({"error": "2%"}, "error", 0.0), share({}, "threshold", 0.5)
    (0.02, 0.5)
    """
    text = query.get(name, str(usual))
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = float("nan")
    if not 0 <= value <= 1:
        raise RefusedError(422, f"{name} is {printable(text)!r}; expected a number from 0 to 1")
    return value
