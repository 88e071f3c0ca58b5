"""``frugalvae predict``: classify images."""

from __future__ import annotations

import argparse
import io
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from frugalvae.cli.answers import FIELDS, FORMS
from frugalvae.cli.options import (
    add,
    add_encoder,
    check_output,
    choice,
    percentage,
    positive,
    refuse_encoder,
)
from frugalvae.console import Display, complain
from frugalvae.errors import InputError
from frugalvae.files import write_bytes
from frugalvae.formatting import percent, printable
from frugalvae.images import holds_features
from frugalvae.model.answers import NONE, THRESHOLD, UNSURE, Answer, Batch, Unreadable, rank

if TYPE_CHECKING:
    from frugalvae.images.photographs import Encoded
    from frugalvae.model.model import Model
    from frugalvae.parts.protocols import Encoder
    from frugalvae.samples import Samples
    from frugalvae.storage.store import Store

STANDARD_INPUT = Path("-")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    parser.description = (
        "Classify images, all images of folders, or the rows of feature files (.npz: the array x, "
        "or else x_test). Answers are printed as they come. Inputs that cannot be read are named "
        "on standard error, and the exit code is then 1."
    )
    parser.epilog = (
        "JSON has predictions, each with input, label (null for none of these, or if no class is "
        "probable enough), known and familiarity (null without --unknown), and top, a list of "
        "label and probability (with --error also sure, with --sets also set); and unreadable and "
        "skipped, each with input and reason. JSON "
        "lines are the same objects, one per input. CSV has a row per input and rank: "
        f"{', '.join(FIELDS)}, which says why an input cannot be read."
    )
    add(parser, "file")
    parser.add_argument(
        "inputs",
        type=Path,
        nargs="+",
        metavar="INPUT",
        help="an image, a folder, a zip archive, FEATURES.npz, or - for paths from standard input",
    )
    parser.add_argument(
        "-0", "--null", action="store_true", help="paths on standard input end with NUL, as "
        "'find -print0' writes them, instead of a newline"
    )  # fmt: skip
    parser.add_argument(
        "--top",
        type=positive,
        default=1,
        metavar="K",
        help="how many classes to name (default: %(default)s)",
    )
    parser.add_argument(
        "--min-probability",
        type=percentage,
        default=0.0,
        metavar="P",
        help=f"name only classes at least this probable; if there is none, answer '{UNSURE}'",
    )
    parser.add_argument(
        "--unknown",
        action="store_true",
        help=f"answer '{NONE}' if an input belongs to no taught class",
    )
    parser.add_argument(
        "--threshold",
        type=percentage,
        metavar="SHARE",
        help="how familiar an input has to look, from 0 to 1, to be taken for known (default: "
        f"{THRESHOLD}); about this share of what is known is rejected. Implies --unknown",
    )
    parser.add_argument(
        "--error",
        type=percentage,
        metavar="SHARE",
        help=f"answer '{UNSURE}' wherever more than this share of answers would be wrong, such as "
        "2%% or 0.02; for images like those that were taught",
    )
    parser.add_argument(
        "--sets",
        type=percentage,
        metavar="SHARE",
        help="also name as many classes as hold the right one this often, such as 95%%",
    )
    form = parser.add_mutually_exclusive_group()
    for name, about in (
        ("json", "print one JSON document at the end"),
        ("jsonl", "print JSON lines, an object per input"),
        ("csv", "print CSV"),
    ):
        form.add_argument(f"--{name}", action="store_const", const=name, dest="form", help=about)
    about = (
        "write the answers to a file, when all are there; .json, .jsonl and .csv choose the form"
    )
    add(parser, "--output", help=about)
    add(parser, "--strict")
    add_encoder(parser, remembered=True)
    add(parser, "--trust")
    add(parser, "--quiet", help="print nothing but answers and errors: no progress bar")
    parser.set_defaults(if_interrupted="nothing was changed")


def run(options: argparse.Namespace) -> int:
    """Print an answer for each input; 1 if an input cannot be read."""
    from frugalvae.storage.store import Store

    store = Store(options.file, trust=options.trust)
    form = options.form or form_of(options.output)
    check_paths(options, store)
    unreadable, skipped = 0, dict[str, str]()

    def told(batches: Iterable[Batch]) -> Iterator[Batch]:
        nonlocal unreadable
        for batch in batches:
            for entry in batch:
                if isinstance(entry, Unreadable) and entry.skipped:
                    skipped[entry.input] = entry.reason
                elif isinstance(entry, Unreadable):
                    unreadable += 1
                    complain(f"{printable(entry.input)} cannot be read: {entry.reason}")
            yield batch

    model = store.load()
    warn_of_promise(model, options.error)
    asked = options.unknown or options.threshold is not None
    if asked and model.n_samples_of_class.max() == 1:
        complain(
            "--unknown: nothing is called unknown yet; that takes a class of two images or more"
        )
    answers = Predictor(model, options).answers()
    with writer(options, form) as write:
        for text in FORMS[form](options.file, told(answers)):
            write(text)
    if skipped and form not in ("json", "jsonl"):  # which name them
        from frugalvae.samples import counted

        for line in counted(skipped):
            complain(line)
    return 1 if unreadable else 0


def warn_of_promise(model: Model, error: float | None) -> None:
    """Say so if too few samples were held out to promise so few wrong answers."""
    found = None if error is None else model.forecast
    if found is not None and error is not None and error < found.least_error:
        complain(
            f"--error {percent(error)} cannot be promised, so no answer is sure: "
            f"{int(found.held.sum())} taught images were held out, which is enough for "
            f"{percent(math.ceil(1000 * found.least_error) / 1000)}"
        )


def form_of(output: Path | None) -> str:
    """The form that a file's ending names.

    >>> form_of(Path("answers.CSV")), form_of(Path("answers.txt")), form_of(None)
    ('csv', 'lines', 'lines')
    """
    ending = output.suffix[1:].lower() if output else ""
    return ending if ending in FORMS else "lines"


def check_paths(options: argparse.Namespace, store: Store) -> None:
    """Refuse wrong paths, before anything heavy is imported."""
    store.check_there()
    if options.output is not None:
        check_form(options)
    given = [path for path in options.inputs if path != STANDARD_INPUT]
    if len(given) < len(options.inputs):
        return
    if not any(path.exists() for path in given):
        names = ", ".join(map(str, given[:3])) + (", ..." if len(given) > 3 else "")
        raise InputError(f"{names}: there is no such file or folder; check the path")
    if all(map(holds_features, given)):
        refuse_encoder(options, given[0])


def check_form(options: argparse.Namespace) -> None:
    """Refuse a file whose ending is of another form than the answers."""
    check_output(options.output, ".json", ".jsonl", ".csv", ".txt")
    ending = options.output.suffix[1:].lower()
    if options.form and ending in FORMS and ending != options.form:
        raise InputError(
            f"{options.output} has the ending .{ending}; expected one of --{options.form}"
        )


@contextmanager
def writer(options: argparse.Namespace, form: str) -> Iterator[Callable[[str], object]]:
    """What writes answers: to standard output at once, or to a file when all are there.

    A progress bar is shown where somebody looks at one.
    """
    done: list[str] = []
    to_file = options.output is not None
    if sys.stdout.isatty() and not options.quiet and (to_file or form == "lines"):
        display = Display()
        with display.watching():
            yield done.append if to_file else lambda text: display.say(*text.splitlines())
    else:
        yield done.append if to_file else print_now
    if to_file:
        write_bytes(options.output, "".join(done).encode("utf-8", "surrogateescape"))


def print_now(text: str) -> None:
    """Text on standard output; for scripts, names that are not UTF-8 stay as they are."""
    if sys.stdout.isatty():
        text = "\n".join(map(printable, text.split("\n")))
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.encoding.lower() == "utf-8":
        sys.stdout.reconfigure(errors="surrogateescape")
    sys.stdout.write(text)
    sys.stdout.flush()


class Predictor:
    """A model and its encoder, which is made when the first image comes."""

    def __init__(self, model: Model, options: argparse.Namespace) -> None:
        self.model, self.options = model, options
        self.encoder: Encoder | None = None
        self.threshold: float | None = options.threshold
        if options.unknown and options.threshold is None:
            self.threshold = THRESHOLD

    def answers(self) -> Iterator[Batch]:
        """The results of all inputs, as they come and in their order."""
        from frugalvae.samples import open_unlabelled

        for paths in groups(self.options):
            with open_unlabelled(paths) as opened:
                for samples in opened:
                    if samples.files is None:  # or refuse features before any answer
                        samples.encoder(self.model.encoder, choice(self.options), self.options.file)
                for samples in opened:
                    yield from self.of(samples)

    def of(self, samples: Samples) -> Iterator[Batch]:
        """The results of samples, a batch at a time."""
        from frugalvae.samples import refuse

        if self.options.strict:
            refuse(samples.skipped)
        yield [Unreadable(name, why, skipped=True) for name, why in samples.skipped.items()]
        if samples.files is not None and self.encoder is None:
            found = samples.encoder(self.model.encoder, choice(self.options), self.options.file)
            self.encoder = found[0]
        for names, encoded in samples.batches(self.encoder, self.options.batch_size):
            yield self.in_order(names, encoded)

    def in_order(self, names: list[str], encoded: Encoded) -> Batch:
        """The results of a batch, in the order of its inputs."""
        results: dict[int, Answer | Unreadable] = {
            place: Unreadable(names[place], why) for place, why in encoded.reasons.items()
        }
        places, options = encoded.places.tolist(), self.options
        answers = rank(
            self.model,
            [names[place] for place in places],
            encoded.features,
            options.top,
            options.min_probability,
            self.threshold,
            options.error,
            options.sets,
        )
        results |= dict(zip(places, answers, strict=True))
        return [results[place] for place in range(len(names))]


def groups(options: argparse.Namespace) -> Iterator[Sequence[Path]]:
    """The paths of the command line; those of standard input as they arrive."""
    for is_stream, paths in groupby(options.inputs, lambda path: path == STANDARD_INPUT):
        if is_stream:
            yield from arriving(b"\0" if options.null else b"\n")
        else:
            yield list(paths)


def arriving(end: bytes) -> Iterator[list[Path]]:
    """Paths on standard input, each time all that have been written so far."""
    from os import fsdecode

    rest, source = b"", sys.stdin.buffer
    assert isinstance(source, io.BufferedIOBase)
    while content := source.read1():
        *names, rest = (rest + content).split(end)
        if end != b"\0" and b"\0" in content:
            raise InputError("paths on standard input end with NUL; give -0 as well")
        if end == b"\n":
            names = [name.removesuffix(b"\r") for name in names]  # as Windows ends lines
        yield [Path(fsdecode(name)) for name in names if name]
    if rest:
        yield [Path(fsdecode(rest))]
