"""Models in the format of the Hugging Face hub: from a folder, or from the hub itself.

Whoever made a model made its weights and settings; code of theirs is never run.
"""

from __future__ import annotations

import importlib
import logging
import pickle
import warnings
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frugalvae.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SAFE = {"trust_remote_code": False}  # without it, transformers asks whether to run code
OWN = {**SAFE, "attn_implementation": "sdpa"}  # a model may name code on the hub for it


def pretrained(kind: str, model: str | Path) -> Any:
    """``transformers.<kind>.from_pretrained(model)``, with errors that say what to do.

    Parameters
    ----------
    kind
        A class of ``transformers``, such as ``"CLIPModel"``.
    model
        A folder that ``save_pretrained`` wrote, or a name on the hub such as
        ``"openai/clip-vit-base-patch32"``, which is downloaded once.

    Examples
    --------
    >>> pretrained("CLIPModel", "./absent/")
    Traceback (most recent call last):
    ...
    frugalvae.errors.InputError: ./absent/: there is no such folder; check the path
    """
    check_model(model)
    part = getattr(import_transformers(), kind)
    try:
        with _quiet():
            if not hasattr(part, "config_class"):  # not a network: it has no weights
                return part.from_pretrained(str(model), **SAFE)
            network, report = part.from_pretrained(str(model), output_loading_info=True, **OWN)
    except Exception as error:  # what is damaged, or meant to do damage, fails in many ways
        raise InputError(
            f"{model}: no {kind} can be loaded ({_reason(error)}); expected a folder with "
            "a model as save_pretrained writes it, or a name on the hub and a network"
        ) from error
    absent = sorted(report["missing_keys"])
    if absent:  # which would be random
        raise InputError(
            f"{model}: {len(absent)} of the weights of a {kind} are not in it, such as "
            f"{absent[0]}; expected such a model, saved whole"
        )
    return network


def check_model(model: str | Path) -> None:
    """Refuse what looks like a folder and is none, before a hub is asked for it."""
    if Path(model).is_dir():
        return
    text = str(model)
    is_path = text.startswith((".", "/", "~")) or text.endswith("/") or text.count("/") > 1
    if is_path or isinstance(model, Path):
        raise InputError(f"{model}: there is no such folder; check the path")


def snapshot(model: str, choose: Callable[[list[str]], list[str]]) -> Path:
    """A folder with files of a model on the hub, downloaded unless they are there.

    Parameters
    ----------
    choose
        Is given the names of all files, and says which are needed, the most important last;
        or raises an ``InputError`` if what is needed is not among them.
    """
    hub = _import(
        "huggingface_hub", "a model that is no file or folder here, but a name on the hub,", "onnx"
    )
    with suppress(OSError, ValueError):  # as which errors of the hub count too, and our own
        folder = Path(hub.snapshot_download(model, local_files_only=True))
        choose([path.relative_to(folder).as_posix() for path in folder.rglob("*")])
        return folder
    try:
        *rest, last = choose(list(hub.list_repo_files(model)))
        with _no_bars():
            if rest:
                hub.snapshot_download(model, allow_patterns=rest)
            return Path(hub.snapshot_download(model, allow_patterns=[last]))  # so all is there
    except InputError:
        raise
    except Exception as error:  # of the network, the hub, and the name
        raise InputError(
            f"{model}: it cannot be downloaded ({_reason(error)}); expected a folder, a file, or "
            "a name on the hub and a network"
        ) from error


def import_transformers() -> Any:
    """``transformers``, or how to install it."""
    return _import("transformers", "CLIP", "clip")


def import_tokenizers() -> Any:
    """``tokenizers``, or how to install it."""
    return _import("tokenizers", "A text tower", "onnx")


def _import(package: str, what: str, extra: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise InputError(
            f"{what} needs {package!r}, which is not installed; pip install 'frugalvae[{extra}]'"
        ) from error


def _reason(error: Exception) -> str:
    """The first sentence of an error."""
    if isinstance(error, pickle.UnpicklingError):  # whose advice is to load it all the same
        return "its weights are damaged, or hold more than tensors and might run code"
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".")


@contextmanager
def _quiet() -> Iterator[None]:
    """Without bars, notes and warnings of the libraries below: this one never prints."""
    from huggingface_hub.utils import logging as hub
    from transformers.utils import logging as chatter

    levels, bars = (chatter.get_verbosity(), hub.get_verbosity()), chatter.is_progress_bar_enabled()
    chatter.set_verbosity(logging.ERROR)
    hub.set_verbosity(logging.CRITICAL)
    chatter.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        chatter.set_verbosity(levels[0])
        hub.set_verbosity(levels[1])
        if bars:
            chatter.enable_progress_bar()


@contextmanager
def _no_bars() -> Iterator[None]:
    from huggingface_hub import utils

    before = utils.are_progress_bars_disabled()
    utils.disable_progress_bars()
    try:
        yield
    finally:
        if not before:
            utils.enable_progress_bars()
