"""``frugalvae encode``: images to a feature file, with what a person wants to know of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from frugalvae.cli.output import print_json
from frugalvae.cluster import Cluster
from frugalvae.console import Display
from frugalvae.encoders import MANY, check_frozen, make_frozen
from frugalvae.errors import InputError
from frugalvae.files import check_place
from frugalvae.formatting import duration, plural
from frugalvae.images.encode import Report, Runner, check_testable, encode_images
from frugalvae.images.left_out import counted, named
from frugalvae.images.listing import Listing, open_images
from frugalvae.images.shards import Encoded, Shard
from frugalvae.interfaces import Encoder


def run_encode(
    path: Path,
    output: Path,
    *,
    encoder: str,
    model: str | None,
    changes: Sequence[tuple[str, str, Any]],
    batch_size: int,
    jobs: int,
    strict: bool,
    ray: bool,
    ray_address: str | None,
    gpus: float,
    quiet: bool,
    depth: int | None = None,
    json: bool = False,
) -> Report:
    """Encode, show how it goes, and say what came of it."""
    check_place(output)
    check_choice(encoder, model)
    settings = encoder_settings(model, changes)
    display = Display(quiet or json)
    with open_images(path, "both", depth=depth) as images:
        check_testable(images)
        for line in [*images.notes, *counted(images.skipped), describe(images)]:
            display.say(line)
        frozen = make_frozen(encoder, **settings)
        with display.watching(), runner(frozen, batch_size, jobs, ray, ray_address, gpus) as run:
            report = encode_images(
                images,
                output,
                frozen,
                batch_size=batch_size,
                threads=jobs,
                strict=strict,
                runner=run,
                say=display.say,
            )
    for line in [*summary(report), f"written: {output}"]:
        display.say(line)
    if json:
        print_json(told(output, images, report))
    return report


def told(output: Path, images: Listing, report: Report) -> dict[str, Any]:
    """What ``--json`` prints."""
    return {
        "file": str(output),
        "classes": len(report.features.classes),
        "train": len(report.features.x_train),
        "test": len(report.features.x_test),
        "unreadable": report.skipped,
        "left_out": report.missing,
        "skipped": images.skipped,
        "assumed": images.notes,
    }


def check_choice(encoder: str, model: str | None) -> None:
    """Refuse what no encoder is made of, before images are looked for and models loaded."""
    check_frozen(encoder)
    if model is None and encoder in MANY:
        raise InputError(f"--encoder {encoder} needs a model: give --model with {MANY[encoder]}")


def encoder_settings(model: str | None, changes: Sequence[tuple[str, str, Any]]) -> dict[str, Any]:
    """What the encoder is made with.

    >>> encoder_settings("lite2", [("encoder", "size", 128)])
    {'model': 'lite2', 'size': 128}
    """
    for part, name, _ in changes:
        if part != "encoder":
            raise InputError(f"--set {part}.{name}: there is no {part} here, only an encoder")
    named = {} if model is None else {"model": model}
    return {**named, **{name: value for _, name, value in changes}}


@contextmanager
def runner(
    encoder: Encoder, batch_size: int, jobs: int, ray: bool, address: str | None, gpus: float
) -> Iterator[Runner | None]:
    """What encodes on Ray, if that is wanted; it is stopped afterwards."""
    if not (ray or address):
        yield None
        return
    from frugalvae.images.on_ray import encode_on_ray

    cluster = Cluster(address, jobs=jobs, gpus=gpus)

    def run(shards: Sequence[Shard]) -> Iterator[tuple[Shard, Encoded]]:
        return encode_on_ray(shards, encoder, batch_size, cluster)

    try:
        yield run
    finally:
        cluster.close()


def describe(images: Listing) -> str:
    """One line before the work."""
    test = int(images.test.sum())
    return (
        f"{images.name}: {plural(len(images.paths), 'image')} of {len(images.classes)} classes, "
        f"{len(images.paths) - test:,} for training and {test:,} for the test"
    )


def summary(report: Report) -> list[str]:
    """Some lines after it."""
    lines = []
    if report.encoded:
        rate = report.encoded / max(report.seconds, 1e-9)
        spent = duration(report.seconds) if report.seconds >= 10 else f"{report.seconds:.1f} s"
        lines.append(f"{plural(report.encoded, 'image')} in {spent}, {rate:,.1f} a second")
    if report.skipped:
        number = plural(len(report.skipped), "image")
        lines += [f"left out as unreadable, {number}:", *named(report.skipped)]
    lines += [
        f"class {name!r} is left out: no training image of it can be read"
        for name in report.missing
    ]
    features = report.features
    return [
        *lines,
        f"{len(features.classes)} classes, {len(features.x_train):,} training and "
        f"{len(features.x_test):,} test features of {features.x_train.shape[1]} numbers"
        + (", and a text feature a class" if features.text else ""),
    ]
