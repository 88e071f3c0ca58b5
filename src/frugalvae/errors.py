"""Errors that a user can act on: what was given, what was expected, what to do."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

#: The extra that installs each optional package.
EXTRAS = {
    "sklearn": "sklearn",
    "scipy": "sklearn",
    "torch": "vae",
    "transformers": "clip",
    "huggingface_hub": "onnx",
    "tokenizers": "onnx",
    "pillow_heif": "heif",
    "jinja2": "report",
    "matplotlib": "report",
    "ray": "ray",
    "starlette": "serve",
    "uvicorn": "serve",
    "python_multipart": "serve",
}

#: The extra of parts that need more than the package that is found missing first.
PART_EXTRAS = {"clip": "clip", "transformers": "clip", "prompt": "clip"}


class FrugalError(Exception):
    """Base of all errors that this package raises on purpose."""


class InputError(FrugalError, ValueError):
    """The data or the arguments cannot be used; nothing was changed."""


class KnownClassError(InputError):
    """A class was taught that is known already."""


class UnknownNameError(InputError, KeyError):
    """Something was asked for by a name that nothing has."""

    __str__ = Exception.__str__  # KeyError would show the message in quotes


class UnknownClassError(UnknownNameError):
    """A class was asked for that was never taught."""


class FeatureFileError(InputError):
    """A feature file is missing, damaged or not in the expected format."""


class MemoryFileError(InputError):
    """A saved classifier is missing, damaged, or from a version that cannot be read."""


class BusyError(InputError):
    """Another process is changing the file; nothing was changed, and it may be tried again."""


class UntrustedError(MemoryFileError):
    """A file names a module or a model that whoever calls has not named."""


class DeviceError(InputError):
    """A device was asked for that cannot be used here."""


class MissingPackageError(InputError, ImportError):
    """Something needs a package that is not installed."""


class SaturationWarning(UserWarning):
    """A layer's null space is used up: learning more will disturb old classes."""


class ConvergenceWarning(UserWarning):
    """The fixed-point iteration stopped before it stood still."""


def check_choice(name: str, value: object, choices: Iterable[object]) -> None:
    """Refuse a setting that is none of its choices.

    >>> check_choice("start", "mean", ["means", "text"])
    Traceback (most recent call last):
    ...
    frugalvae.errors.InputError: start is 'mean'. Did you mean 'means'? Choices: 'means', 'text'
    """
    choices = list(choices)
    if value not in choices:
        raise InputError(
            f"{name} is {value!r}.{suggestion(value, choices)} "
            f"Choices: {', '.join(map(repr, choices))}"
        )


def check_number(
    name: str,
    value: object,
    least: float = -math.inf,
    most: float = math.inf,
    *,
    whole: bool = False,
) -> None:
    """Refuse a setting that is no number, or out of bounds.

    >>> check_number("epochs", "abc", 1, whole=True)
    Traceback (most recent call last):
    ...
    frugalvae.errors.InputError: epochs is 'abc'; expected a whole number, at least 1
    """
    kind = numbers.Integral if whole else numbers.Real
    fits = isinstance(value, kind) and not isinstance(value, bool)
    if not fits or not least <= value <= most:  # type: ignore[operator]
        bounds = f"at least {least}" if most == math.inf else f"from {least} to {most}"
        raise InputError(f"{name} is {value!r}; expected a {'whole ' * whole}number, {bounds}")


def suggestion(name: object, known: Iterable[object]) -> str:
    """`` Did you mean ...?`` with the nearest known name, or nothing.

    >>> suggestion("vae-f0", ["vae-fo", "store-all"])
    " Did you mean 'vae-fo'?"
    >>> suggestion("zebra", ["vae-fo"])
    ''
    """
    names = {str(candidate): candidate for candidate in known}
    import difflib

    close = difflib.get_close_matches(str(name), names, n=1)
    return f" Did you mean {names[close[0]]!r}?" if close else ""


def how_to_install(extra: str) -> str:
    """The command that brings an extra, for who has a clone.

    >>> how_to_install("ray")
    "pip install '.[ray]' in the folder of FrugalVAE"
    """
    return f"pip install '.[{extra}]' in the folder of FrugalVAE"


#: The same for the distribution ``frugalvae-lab``.
LABORATORY_COMES_BY = "pip install ./lab in the folder of FrugalVAE"


@contextmanager
def needing(what: str, part: str = "") -> Iterator[None]:
    """If an optional package is missing inside the block, say how to install it.

    >>> with needing("The moon"):
    ...     raise ModuleNotFoundError(name="torch")
    Traceback (most recent call last):
    ...
    frugalvae.errors.MissingPackageError: The moon needs 'torch', which is not installed; ...
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").split(".")[0]
        if package not in EXTRAS:
            raise
        raise MissingPackageError(
            f"{what} needs {package!r}, which is not installed; "
            + how_to_install(PART_EXTRAS.get(part) or EXTRAS[package])
        ) from error
