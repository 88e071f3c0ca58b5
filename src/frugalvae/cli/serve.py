"""``frugalvae serve``: use and teach a classifier in the browser, or over HTTP."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from frugalvae.cli.options import add, flag, positive, seconds, value
from frugalvae.errors import InputError
from frugalvae.files import check_place, read_plain
from frugalvae.server.settings import SHORTEST_TOKEN, Limits, Settings

if TYPE_CHECKING:
    import socket

MEGABYTE = 1_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    usual = Limits()
    parser.epilog = "The server documents all its requests at /docs, and so does docs/serve.md."
    add(parser, "file")
    flag(parser, "--teach", "allow teaching and changing the file")
    about = "where to listen; anything but this machine needs --token-file (default: %(default)s)"
    value(parser, "--host", "ADDRESS", about, default="127.0.0.1")
    value(
        parser,
        "--port",
        "N",
        "the port (default: %(default)s); 0 takes any free one",
        type=port,
        default=8000,
    )
    about = (
        f"a file with the token, {SHORTEST_TOKEN} characters or more, that every request must carry"
    )
    value(parser, "--token-file", "FILE", about, type=Path)
    about = "a further host name under which the server answers; may be repeated"
    value(parser, "--allow-host", "NAME", about, action="append", default=[])
    about = "keep the images that are sent in this folder; without it none is written to disk"
    value(parser, "--keep", "FOLDER", about, type=Path)
    limits = parser.add_argument_group("limits")
    for name, default, about in (
        ("--max-body", usual.body // MEGABYTE, "megabytes of a request"),
        ("--max-images", usual.images, "images in a request"),
        ("--max-pixels", usual.pixels // MEGABYTE, "megapixels of an image"),
        ("--max-requests", usual.requests, "requests at a time"),
        (
            "--recent",
            usual.recent,
            "images of recent questions that are kept in memory, for the tray",
        ),
    ):
        text = f"{about} (default: %(default)s)"
        value(limits, name, "N", text, type=positive, default=default)
    for name, usually, about in (
        ("--time-limit", usual.seconds, "for a request to arrive, and again to be answered"),
        ("--recent-time", usual.seconds_remembered, "for which they are kept"),
    ):
        text = f"seconds {about} (default: %(default)g)"
        value(limits, name, "SECONDS", text, type=seconds, default=usually)
    add(
        parser,
        "--encoder",
        help="the encoder of a new file, or another format of this file's",
    )
    add(parser, "--model", help="the encoder's model, or where it is now if it has moved")
    add(parser, "--views")
    add(parser, "--trust", "--wait", "--quiet")
    parser.set_defaults(if_interrupted="what was answered with success is in the file")


def port(text: str) -> int:
    """A number of a port."""
    if not text.strip().isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port, a whole number up to 65535")
    return int(text)


def run(options: argparse.Namespace) -> None:
    """Serve a classifier: a page in the browser, and the same over HTTP.

    By default only this machine can reach it, and nobody can change the file. With --teach, the
    file need not exist. Meanwhile you can use the other commands of frugalvae on the file.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # pictures are looked at one on each core
    settings = settings_of(options)
    from frugalvae.storage.store import Store

    store = Store(settings.file)
    if not settings.teach:
        store.check_there()  # before anybody is told that it can be asked
    if settings.views is not None and store.exists:
        from frugalvae.encoders import check_views

        check_views(store.read().document["encoder"], settings.views, settings.file)
    from frugalvae.server.running import listen, serve

    opened = listen(settings)
    if not options.quiet:
        announce(settings, opened)
    serve(settings, opened)


def announce(settings: Settings, opened: socket.socket) -> None:
    """Say where it is, and what may be done there."""
    from frugalvae.server.running import address

    may = "asked and taught" if settings.teach else "asked; --teach lets it be taught"
    shown = f"{address(settings.host, opened.getsockname()[1])}"
    print(f"{settings.file.name} can be {may}: {shown}", flush=True)
    if settings.token:
        print("every request has to show the token; the page asks for it", flush=True)


def settings_of(options: argparse.Namespace) -> Settings:
    """What was typed, unless it would let strangers in."""
    settings = Settings(
        file=options.file,
        teach=options.teach,
        host=options.host,
        port=options.port,
        token=read_secret(options.token_file) if options.token_file else None,
        hosts=tuple(options.allow_host),
        keep=options.keep,
        encoder=options.encoder,
        model=options.model,
        views=options.views,
        trust=tuple(options.trust),
        limits=Limits(
            body=options.max_body * MEGABYTE,
            images=options.max_images,
            pixels=options.max_pixels * MEGABYTE,
            requests=options.max_requests,
            seconds=options.time_limit,
            wait=options.wait,
            recent=options.recent,
            seconds_remembered=options.recent_time,
        ),
    )
    if not settings.on_loopback and settings.token is None:
        raise InputError(
            f"--host {settings.host} lets others ask, and there is no token; write one of at least "
            f"{SHORTEST_TOKEN} letters into a file, and give --token-file FILE"
        )
    if settings.keep is not None:
        check_place(settings.keep / "picture")
    return settings


def read_secret(path: Path) -> str:
    """The first line of a file."""
    try:
        lines = read_plain(path).decode().splitlines()
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({error}); give a file with the token") from error
    found = lines[0].strip() if lines else ""
    if len(found) < SHORTEST_TOKEN or not found.isascii() or not found.isprintable():
        raise InputError(
            f"{path}: its first line has {len(found)} letters; expected {SHORTEST_TOKEN} or more, "
            "plain ones, such as 'openssl rand -hex 24' prints"
        )
    return found
