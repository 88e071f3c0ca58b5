"""Models in the format of the Hugging Face hub: from a folder, or from the hub itself."""

from __future__ import annotations

import importlib
import logging
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frugalvae.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator


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
                return part.from_pretrained(str(model))
            network, report = part.from_pretrained(str(model), output_loading_info=True)
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise InputError(
            f"{model}: no {kind} can be loaded ({_first_sentence(error)}); expected a folder with "
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


def import_transformers() -> Any:
    """``transformers``, or how to install it."""
    try:
        return importlib.import_module("transformers")
    except ImportError as error:
        raise InputError(
            "CLIP needs 'transformers', which is not installed; pip install 'frugalvae[clip]'"
        ) from error


def _first_sentence(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".")


@contextmanager
def _quiet() -> Iterator[None]:
    """Without bars and notes of the libraries below: this one never prints."""
    from huggingface_hub.utils import logging as hub
    from transformers.utils import logging as chatter

    levels, bars = (chatter.get_verbosity(), hub.get_verbosity()), chatter.is_progress_bar_enabled()
    chatter.set_verbosity(logging.ERROR)
    hub.set_verbosity(logging.CRITICAL)
    chatter.disable_progress_bar()
    try:
        yield
    finally:
        chatter.set_verbosity(levels[0])
        hub.set_verbosity(levels[1])
        if bars:
            chatter.enable_progress_bar()
