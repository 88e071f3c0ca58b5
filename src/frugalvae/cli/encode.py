"""``frugalvae encode``: turn images into a feature file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frugalvae import encoders
from frugalvae.cli.options import add, add_encoder, add_ray, check_output, choice, settings_of
from frugalvae.console import Display, print_json
from frugalvae.errors import InputError
from frugalvae.formatting import duration, plural

if TYPE_CHECKING:
    from frugalvae.encoding import Report
    from frugalvae.samples import Samples


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    about = "a folder, or a zip archive of it"
    parser.add_argument("images", type=Path, metavar="IMAGES", help=about)
    add(parser, "--output", required=True, metavar="FILE.npz", help="the file to write")
    add_encoder(parser)
    add(parser, "--set", help="change a setting of the encoder, such as encoder.size=128")
    about = "threads that decode images, or tasks on Ray (default: one per core)"
    add(parser, "--jobs", help=about)
    add(parser, "--depth", "--strict")
    add_ray(parser, "task")
    add(parser, "--json", "--quiet")
    parser.set_defaults(if_interrupted="what is encoded is kept, and the same command continues")


def run(options: argparse.Namespace) -> None:
    """Encode a folder of images into a feature file. Each folder of images is a class.

    Folders train/ and test/ with such folders in them are the two sets. Without them, a random but
    always equal quarter of each class is the test set. If interrupted, run the same command again:
    it continues.
    """
    from frugalvae.encoding import check_testable, encode_samples
    from frugalvae.engines import engine
    from frugalvae.samples import counted, open_samples

    encoder = options.encoder or encoders.DEFAULT
    check_output(options.output, ".npz")
    settings = encoder_settings(encoder, options)
    display = Display(options.quiet or options.json)
    with open_samples(options.images, "both", depth=options.depth) as images:
        check_testable(images)
        display.say(*images.notes, *counted(images.skipped), describe(images))
        frozen = encoders.make_encoder(encoder, **settings)
        on_ray = options.ray or options.ray_address  # else threads decode, and one process encodes
        where = engine(
            options.jobs if on_ray else 1,
            ray=options.ray,
            address=options.ray_address,
            gpus=options.gpus,
        )
        with display.watching(), where as run_on:
            report = encode_samples(
                images,
                options.output,
                frozen,
                batch_size=options.batch_size,
                threads=options.jobs,
                strict=options.strict,
                engine=run_on,
                say=display.say,
            )
    display.say(*summary(report), f"written: {options.output}")
    if options.json:
        print_json(outcome(options.output, images, report))


def outcome(output: Path, images: Samples, report: Report) -> dict[str, Any]:
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


def encoder_settings(encoder: str, options: argparse.Namespace) -> dict[str, Any]:
    """What the encoder is made with, or refuse it before images are looked for."""
    _ = encoders.ENCODERS[encoder]  # or say which there are
    if options.model is None and encoder in encoders.MODEL_HELP:
        raise InputError(
            f"--encoder {encoder} needs a model: give --model with {encoders.MODEL_HELP[encoder]}"
        )
    settings_of(options, "encoder")  # or refuse a setting of something else
    model = {} if options.model is None else {"model": options.model}
    return {**model, **choice(options).settings}


def describe(images: Samples) -> str:
    """One line before the work."""
    test = int(images.test.sum())
    return (
        f"{images.name}: {plural(len(images), 'image')} of "
        f"{plural(len(images.classes), 'class')}, "
        f"{len(images) - test:,} for training and {test:,} for the test"
    )


def summary(report: Report) -> list[str]:
    """Some lines after it."""
    from frugalvae.samples import named

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
