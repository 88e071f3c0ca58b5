"""``frugalvae learn --names``: classes that are taught by name alone."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from frugalvae.cli.lesson import LessonResult
from frugalvae.cli.options import choice
from frugalvae.encoders.remembered import load_encoder
from frugalvae.errors import InputError
from frugalvae.files import read_plain
from frugalvae.formatting import plural, shortened
from frugalvae.labels import as_label, check_case
from frugalvae.naming import learn_names, read_names, unread

if TYPE_CHECKING:
    from frugalvae.cli.lesson import Lesson

LONGEST = 2**20  # bytes of a file of names


def from_names(lesson: Lesson) -> LessonResult:
    """Teach the names that were typed, and are new."""
    options, model = lesson.options, lesson.model
    names = [name for text in options.names for name in names_in(text)]
    aliases = {name: y for name, y in model.aliases.items() if name not in options.again}
    aliases |= {str(label): label for label in model.classes.tolist()}
    known = {name: aliases[name] for name in names if aliases.get(name) is not None}
    new = [name for name in names if name not in known]
    if not options.case_matters:
        check_case(new, map(str, model.classes.tolist()))
    leave = {*lesson.misspelt(new), *lesson.same}  # the latter are found by the former
    new = [name for name in new if name not in leave]
    known |= lesson.same
    lesson.say(
        *(
            [f"{plural(len(known), 'class')} known already: {shortened(sorted(known))}"]
            if known
            else []
        ),
        *([f"{plural(len(new), 'new class')} by name alone: {shortened(new)}"] if new else []),
    )
    result = LessonResult(model, known=sorted(set(known.values()), key=str))
    if not new or options.dry_run:
        return result
    encoder, remembered = load_encoder(lesson.encoder, choice(options), lesson.store.given)
    with lesson.display.watching():
        model = learn_names(model, read_names(encoder, [*new, *unread(model)]))
    model = replace(model, encoder=remembered)
    lesson.store.save(model)
    result.model, result.learned = model, dict.fromkeys(new, 0)
    return result


def names_in(text: str) -> list[str]:
    """The names in ``heron, egret``, or in a file with a name per line; each once."""
    path = Path(text)
    lines = text.split(",")
    if os.path.exists(text) and not os.path.isdir(text):  # a list may be longer than any path
        try:
            lines = read_plain(path, LONGEST).decode("utf-8-sig").splitlines()
        except UnicodeDecodeError as error:
            raise InputError(f"{path} is no text in UTF-8; expected a name per line") from error
        except (OSError, InputError) as error:
            raise InputError(
                f"{path} cannot be read ({error}); expected a name per line"
            ) from error
    names = list(dict.fromkeys(name for name in map(as_label, lines) if name))
    if not names:
        raise InputError(f"--names {text!r} holds no name; expected some, such as 'heron, egret'")
    return names
