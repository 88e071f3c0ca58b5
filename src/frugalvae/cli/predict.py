"""``frugalvae predict``: classify images."""

from __future__ import annotations

import argparse
import csv
import io
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frugalvae.cli.options import (
    add,
    add_encoder,
    check_output,
    encoder_of,
    flag,
    percentage,
    positive,
    refuse_encoder,
    value,
)
from frugalvae.console import Display, json_text, print_error
from frugalvae.errors import InputError
from frugalvae.files import write_bytes
from frugalvae.formatting import as_cell, percent, printable
from frugalvae.images import holds_features
from frugalvae.model.answers import NONE, THRESHOLD, UNSURE, Answer, Batch, Unreadable

if TYPE_CHECKING:
    from frugalvae.model.model import Model
    from frugalvae.storage.store import Store

STANDARD_INPUT = Path("-")
FIELDS = (
    "input", "rank", "label", "probability", "known", "familiarity", "reason", "sure", "set"
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What may be typed."""
    parser.epilog = (
        "JSON has predictions, each with input, label (null for none of these, or if no class is "
        "probable enough), known and familiarity (null without --unknown), and top, a list of "
        "label and probability (with --error also sure, with --sets also set); and unreadable and "
        "skipped, each with input and reason. JSON "
        "lines are the same objects, one per input. CSV has a row per input and rank: "
        f"{', '.join(FIELDS)}. The reason is why an input cannot be read."
    )
    add(parser, "file")
    about = "an image, a folder, a zip archive, FEATURES.npz, or - for paths from standard input"
    parser.add_argument("inputs", type=Path, nargs="+", metavar="INPUT", help=about)
    about = "paths on standard input end with NUL, as 'find -print0' writes them, instead of a "
    flag(parser, "--null", f"{about}newline", "-0")
    about = "how many classes to name (default: %(default)s)"
    value(parser, "--top", "K", about, type=positive, default=1)
    about = f"name only classes at least this probable; if there is none, answer '{UNSURE}'"
    value(parser, "--min-probability", "P", about, type=percentage, default=0.0)
    flag(parser, "--unknown", f"answer '{NONE}' if an input belongs to no taught class")
    about = (
        "the least familiarity, from 0 to 1, of an input that counts as known (default: "
        f"{THRESHOLD}); about this share of known inputs is refused. Implies --unknown"
    )
    value(parser, "--threshold", "SHARE", about, type=percentage)
    about = (
        f"answer '{UNSURE}' so often that at most this share of the other answers is wrong, such "
        "as 2%% or 0.02; holds for images like those that were learned"
    )
    value(parser, "--error", "SHARE", about, type=percentage)
    about = "also list so many classes that the right one is among them this often, such as 95%%"
    value(parser, "--sets", "SHARE", about, type=percentage)
    form = parser.add_mutually_exclusive_group()
    for name, about in (
        ("json", "print one JSON document at the end"),
        ("jsonl", "print JSON lines, an object per input"),
        ("csv", "print CSV"),
    ):
        form.add_argument(f"--{name}", action="store_const", const=name, dest="form", help=about)
    about = (
        "write all answers to this file at the end; its ending chooses the form: .json, .jsonl, "
    )
    add(parser, "--output", help=f"{about}.csv or .txt")
    add(parser, "--strict")
    add_encoder(parser, remembered=True)
    add(parser, "--trust")
    add(parser, "--quiet", help="print nothing but answers and errors: no progress bar")
    parser.set_defaults(if_interrupted="nothing was changed")


def run(options: argparse.Namespace) -> int:
    """Classify images, all images of folders, or the rows of feature files.

    In a feature file (.npz), the rows are those of the array x, or else of x_test. Answers are
    printed as they come. Inputs that cannot be read are listed on standard error, and the exit
    code is then 1.
    """
    from frugalvae.storage.store import Store

    store = Store(options.file, trust=options.trust)
    form = options.form or form_of(options.output)
    check_paths(options, store)
    model = store.load(answering=False)
    warn_of_promise(model, options.error)
    if options.unknown and options.threshold is None:
        options.threshold = THRESHOLD
    if options.threshold is not None and model.n_samples_of_class.max() == 1:
        print_error(
            "--unknown: nothing is called unknown yet; that takes a class of two images or more"
        )
    left_out = list[Unreadable]()
    with ThreadPoolExecutor(1) as beside, writer(options, form) as write:
        ready = beside.submit(store.check_answering, model)  # while the network is loaded
        for text in FORMS[form](options.file, noted(answers(model, options, ready), left_out)):
            write(text)
    skipped = {entry.input: entry.reason for entry in left_out if entry.skipped}
    if skipped and form not in ("json", "jsonl"):  # which name them
        from frugalvae.samples import counted

        for line in counted(skipped):
            print_error(line)
    return 0 if all(entry.skipped for entry in left_out) else 1


def answers(model: Model, options: argparse.Namespace, ready: Future[None]) -> Iterator[Batch]:
    """The results of all inputs, as they come and in their order; the encoder is loaded once.

    None comes before the model is ``ready`` to answer.
    """
    from frugalvae.samples import open_unlabelled, refuse
    from frugalvae.verbs.predict import predict

    encoder = None
    how = {name: getattr(options, name) for name in ("top", "min_probability", "threshold")}
    how |= {"error": options.error, "coverage": options.sets, "batch_size": options.batch_size}
    for paths in groups(options):
        with open_unlabelled(paths) as opened:
            for samples in opened:
                if samples.files is None:  # or refuse features before any answer
                    encoder_of(samples, model.encoder, options)
            for samples in opened:
                if options.strict:
                    refuse(samples.skipped)
                if samples.files is not None and encoder is None:
                    encoder = encoder_of(samples, model.encoder, options)
                ready.result()
                yield from predict(model, samples, encoder, **how)


def noted(batches: Iterable[Batch], left_out: list[Unreadable]) -> Iterator[Batch]:
    """The same results; what cannot be read is named, and added to what is left out."""
    for batch in batches:
        for entry in batch:
            if isinstance(entry, Unreadable):
                left_out.append(entry)
                if not entry.skipped:
                    print_error(f"{printable(entry.input)} cannot be read: {entry.reason}")
        yield batch


def warn_of_promise(model: Model, error: float | None) -> None:
    """Say so if too few samples were held out to promise so few wrong answers."""
    found = None if error is None else model.forecast
    if found is not None and error is not None and error < found.least_error:
        print_error(
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


# --------------------------------------------------------------------------- forms of answers


def as_lines(_: Path, batches: Iterable[Batch]) -> Iterator[str]:
    """For people: a line for each answer."""
    width = 0  # of names so far: those to come are not known yet
    for batch in batches:
        answers = [entry for entry in batch if isinstance(entry, Answer)]
        names = [printable(answer.input) for answer in answers]
        width = max([width, *map(len, names)])
        lines = [
            f"{name:{width}}  {printable(', '.join(in_words(answer)))}\n"
            for name, answer in zip(names, answers, strict=True)
        ]
        if lines:
            yield "".join(lines)


def in_words(answer: Answer) -> list[str]:
    """The likeliest classes with their probabilities.

    >>> in_words(Answer("a.jpg", [("emu", 0.93), ("dax", 0.04)]))
    ['emu 93.0%', 'dax 4.0%']
    >>> in_words(Answer("a.jpg", [("emu", 0.93)], known=False))
    ['none of these', 'nearest is emu (93.0% among the known classes)']
    >>> in_words(Answer("a.jpg", [("emu", 0.93), ("dax", 0.04)], known=False))[1:]
    ['nearest is emu (93.0% among the known classes)', 'dax (4.0%)']
    >>> in_words(Answer("a.jpg", [("emu", 0.53)], sure=False, among=["emu", "dax"]))
    ['not sure', 'likeliest is emu (53.0%)', 'one of: emu, dax']
    """
    if answer.known is False:
        nearest = "nearest is {} ({:.1%} among the known classes)"
        return [NONE, *(nearest.format(*first) for first in answer.top[:1]), *_others(answer)]
    among = [f"one of: {', '.join(map(str, answer.among))}"] if answer.among else []
    if answer.sure is False:
        likeliest = "likeliest is {} ({:.1%})"
        first = [likeliest.format(*first) for first in answer.top[:1]]
        return [UNSURE, *first, *_others(answer), *among]
    return [*([f"{label} {chance:.1%}" for label, chance in answer.top] or [UNSURE]), *among]


def _others(answer: Answer) -> list[str]:
    return [f"{label} ({chance:.1%})" for label, chance in answer.top[1:]]


def as_csv(_: Path, batches: Iterable[Batch]) -> Iterator[str]:
    """A row for each input and rank; one without a class if none is likely enough.

    An input that cannot be read has a row with the reason; what folders have beside images has
    none.
    """
    yield ",".join(FIELDS) + "\n"
    for batch in batches:
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        for entry in batch:
            if isinstance(entry, Answer):
                writer.writerows(map(as_cell, row) for row in csv_rows(entry))
            elif not entry.skipped:
                cells = [entry.input, "", "", "", "", "", entry.reason, "", ""]
                writer.writerow(map(as_cell, cells))
        yield buffer.getvalue()


def csv_rows(answer: Answer) -> Iterator[list[Any]]:
    """The rows of an answer, under :data:`FIELDS`."""
    known = "" if answer.known is None else str(answer.known).lower()
    score = "" if answer.familiarity is None else f"{answer.familiarity:.6f}"
    sure = "" if answer.sure is None else str(answer.sure).lower()
    among = "" if answer.among is None else "; ".join(map(str, answer.among))
    for number, (label, chance) in enumerate(answer.top, start=1):
        yield [answer.input, number, label, f"{chance:.6f}", known, score, "", sure, among]
    if not answer.top:
        yield [answer.input, "", "", "", known, score, "", sure, among]


def as_json_lines(_: Path, batches: Iterable[Batch]) -> Iterator[str]:
    """An object for each input, a line each."""
    for batch in batches:
        texts = (json_text(entry.to_json(), sys.stdout.encoding) for entry in batch)
        yield "".join(f"{text}\n" for text in texts)


def as_json(file: Path, batches: Iterable[Batch]) -> Iterator[str]:
    """One document, when all is answered."""
    entries = [entry for batch in batches for entry in batch]
    failures = [entry for entry in entries if isinstance(entry, Unreadable)]
    document = {
        "file": str(file),
        "predictions": [entry.to_json() for entry in entries if isinstance(entry, Answer)],
        "unreadable": [entry.to_json() for entry in failures if not entry.skipped],
        "skipped": [entry.to_json() for entry in failures if entry.skipped],
    }
    yield json_text(document, sys.stdout.encoding, indent=1) + "\n"


#: Each takes the classifier's file and the results as they come, and gives text as it is ready.
FORMS: dict[str, Callable[[Path, Iterable[Batch]], Iterator[str]]] = {
    "lines": as_lines,
    "csv": as_csv,
    "jsonl": as_json_lines,
    "json": as_json,
}
