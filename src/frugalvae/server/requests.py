"""Reading requests: within limits of bytes, images and time, and never to disk."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError
from python_multipart.multipart import parse_options_header
from starlette.requests import ClientDisconnect, Request

from frugalvae.files import json_object
from frugalvae.formatting import printable, size
from frugalvae.server.guard import CLIENT, RefusedError, Shares, half

if TYPE_CHECKING:
    from frugalvae.server.settings import Limits

Model = TypeVar("Model", bound=BaseModel)

FIELDS = 100  # of a form that are not images
TEXT = 100_000  # bytes of such a field
HEADER, LONGEST = 2_000, 70  # bytes that a part of a form says of itself, and of a boundary
VALUES = 100_000  # in a body of JSON; reading many more would hold up everybody else
SHOWN = 100  # letters of a value that is refused
IMAGES = ("images", "image", "file")  # what forms may call them
JSON, FORM = "application/json", "multipart/form-data"
RAW = ("image/", "application/octet-stream")


@dataclass(frozen=True)
class Upload:
    """An image as it was sent."""

    name: str
    content: bytes


@dataclass
class RequestData:
    """What a request brought: images, and fields besides."""

    uploads: list[Upload] = field(default_factory=list)
    fields: dict[str, Any] = field(default_factory=dict)
    is_form: bool = False

    def parse(self, model: type[Model]) -> Model:
        """The fields, as a model has them."""
        return parse(model, self.fields)

    def check_images(self) -> None:
        """Refuse a request without images."""
        if not self.uploads:
            raise RefusedError(
                422, "no images were sent; give them as 'images' of a form, or as the body"
            )


def parse(model: type[Model], fields: Mapping[str, Any]) -> Model:
    """Fields of a request or of its address, as a model has them; or what is wrong with one.

    >>> from frugalvae.server.models import PredictOptions
    >>> parse(PredictOptions, {"top": "3", "error": "2%"}).error
    0.02
    >>> parse(PredictOptions, {"top": "0"})
    Traceback (most recent call last):
    frugalvae.server.guard.RefusedError: 'top' is '0'; expected: greater than or equal to 1
    """
    try:
        return model.model_validate(dict(fields))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
    name = ".".join(map(str, first["loc"]))
    given = "not given" if first["type"] == "missing" else repr(first["input"])
    wanted = re.sub(r"^(\w+ should (be|have) |Value error, |Field )", "", first["msg"])
    raise RefusedError(422, printable(f"{name!r} is {given[:SHOWN]}; expected: {wanted}"))


class RequestReader:
    """Reads requests; all that are being worked on together take a bounded number of bytes."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        # One body is allowed, however large bodies may be.
        self.held = Shares("bytes at a time", limits.held, max(half(limits.held), limits.body))

    async def read(self, request: Request) -> RequestData:
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
            return self.form(request.headers["content-type"], body)
        if kind == JSON:
            return RequestData(fields=fields_of(body))
        query = dict(request.query_params)
        return RequestData([Upload(printable(query.get("input", "image")), body)], query)

    async def body(self, request: Request) -> bytes:
        """The bytes of a request; they are held until it is answered."""
        length = request.headers.get("content-length", "0")
        self._check(int(length) if length.isdecimal() else 0)
        content, request.state.held = bytearray(), 0
        try:
            async with asyncio.timeout(self.limits.seconds):
                async for part in request.stream():
                    content += part
                    self._check(len(content))
                    self.held.take(CLIENT.get(), len(part))
                    request.state.held += len(part)
        except TimeoutError:
            raise RefusedError(
                408, f"the request did not arrive within {self.limits.seconds:g} s"
            ) from None
        except ClientDisconnect:
            raise RefusedError(400, "the request was cut off") from None
        return bytes(content)

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

    def form(self, kind: str, body: bytes) -> RequestData:
        """A form: images, and fields besides; more than one of a name are a list."""
        options, sent = parse_options_header(kind)[1], RequestData(is_form=True)
        charset = options.get(b"charset", b"utf-8")
        if charset.lower() != b"utf-8":
            raise RefusedError(415, f"the charset is {printable(repr(charset))}; expected utf-8")
        most, count = self.limits.images, 0
        for about, content in parts_of(body, options.get(b"boundary", b"")):
            name, file = text_of(about[b"name"]), about.get(b"filename")
            if file is not None:
                if name not in IMAGES:
                    raise RefusedError(422, f"images are in the field {name!r}; expected 'images'")
                sent.uploads.append(Upload(printable(text_of(file) or "image"), content))
                if len(sent.uploads) > most:
                    raise RefusedError(413, f"more than {most} images; send {most} at a time")
                continue
            count += 1
            if count > FIELDS or len(content) > TEXT:
                raise RefusedError(
                    413, f"expected at most {FIELDS} fields of at most {TEXT:,} bytes"
                )
            value = text_of(content)
            if name in sent.fields:
                before = sent.fields[name]
                sent.fields[name] = [*(before if isinstance(before, list) else [before]), value]
            else:
                sent.fields[name] = value
        return sent


def parts_of(body: bytes, boundary: bytes) -> Iterator[tuple[dict[bytes, bytes], bytes]]:
    r"""What each part of a form says of itself, and its content; quick, whatever was sent.

    >>> body = b'--x\r\nContent-Disposition: form-data; name="top"\r\n\r\n3\r\n--x--'
    >>> list(parts_of(body, b"x"))
    [({b'name': b'top'}, b'3')]
    """
    edge, place = b"\r\n--" + boundary, len(boundary) + 2
    whole = body.startswith(edge[2:]) and 0 < len(boundary) <= LONGEST
    while whole and not body.startswith(b"--", place):
        end = body.find(edge, place)
        start = body.find(b"\r\n\r\n", place, min(max(end, place), place + HEADER))
        about: dict[bytes, bytes] = {}
        for line in body[place : max(start, place)].split(b"\r\n")[1:]:
            field, _, value = line.partition(b":")
            if field.strip().lower() == b"content-disposition":
                about = parse_options_header(value)[1]
        whole = body.startswith(b"\r\n", place) and b"name" in about
        if whole:
            yield about, body[start + 4 : end]
        place = end + len(edge)
    if not whole:
        why = "expected parts with a name, each between two boundaries"
        raise RefusedError(400, f"the form cannot be read: {why}")


def text_of(content: bytes) -> str:
    """Text of a form; older clients may not send UTF-8."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("latin-1")


def fields_of(body: bytes) -> dict[str, Any]:
    """A JSON object; a refusal of half of a letter, which no answer or file can have."""
    if sum(map(body.count, (b"[", b"{", b","))) > VALUES:
        raise RefusedError(413, f"the body has more than {VALUES:,} values; send fewer")
    found = json_object(body) if body.strip() else {}
    if found is None:
        raise RefusedError(400, 'the body is no JSON object, such as {"name": "wren"}')
    try:
        if b"\\u" in body:
            json.dumps(found, ensure_ascii=False).encode()
    except RecursionError:  # reading goes a little deeper than writing
        raise RefusedError(400, "the body has too many brackets in each other") from None
    except UnicodeEncodeError:
        raise RefusedError(
            422, r"the body has half of a letter, such as \ud83d without what follows it"
        ) from None
    return found
