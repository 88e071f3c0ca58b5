"""Models in the format of the Hugging Face hub: from a folder, or from the hub itself.

Whoever made a model made its weights and settings; code of theirs is never run.
"""

from __future__ import annotations

import logging
import pickle
import warnings
from collections.abc import Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from frugalvae.encoders.defaults import CONFIGS, read_settings
from frugalvae.errors import InputError, needing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SAFE = {"trust_remote_code": False}  # without it, transformers asks whether to run code
OWN = {**SAFE, "attn_implementation": "sdpa"}  # a model may name code on the hub for it
#: How files end whose numbers have that precision.
ENDINGS = {"float32": ("",), "float16": ("_fp16",), "int8": ("_int8", "_quantized", "_uint8")}
ADAPTER = "adapter_config.json"
#: Settings of ``transformers``, their entries that it reads files by, and those that it does not.
JSON = ("config.json", "tokenizer_config.json", "special_tokens_map.json")
READ, UNREAD = ("vocab", "merges", "init_inputs"), ("special_tokens_map_file",)
SETTINGS = (*CONFIGS, "config.json", "tokenizer.json", "tokenizer_config.json")


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
    with needing("CLIP"):
        import transformers
    part = getattr(transformers, kind)
    try:
        with _quiet():
            _check_files(str(model))
            if not hasattr(part, "config_class"):  # not a network: it has no weights
                return part.from_pretrained(str(model), **SAFE)
            _check_names(Path(model), transformers.PretrainedConfig.get_config_dict(str(model))[0])
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


def _check_files(model: str) -> None:
    """Refuse settings that name files to read: a tokenizer would, wherever they are."""
    from transformers.utils import cached_file

    for name in JSON:
        path = cached_file(
            model,
            name,
            _raise_exceptions_for_missing_entries=False,
            _raise_exceptions_for_connection_errors=False,
        )
        for key, value in _entries(read_settings(Path(path)) if path else {}):
            if value and (key in READ or key.endswith(("_file", "_files"))) and key not in UNREAD:
                raise ValueError(
                    f"{name} names files in {key!r}, and a model's files are those of its folder "
                    "alone; remove this entry"
                )


def _entries(table: Any) -> Iterator[tuple[str, Any]]:
    """Every key and value of a table, and of the tables in it."""
    waiting = [table]
    while waiting:
        found = waiting.pop()
        if isinstance(found, Mapping):
            yield from found.items()
            waiting += found.values()
        elif isinstance(found, list):
            waiting += found


def _check_names(folder: Path, config: Mapping[str, Any]) -> None:
    """Refuse a model that names other models, files elsewhere, or what code is to compute it."""
    if (folder / ADAPTER).exists():
        raise ValueError(f"{ADAPTER} names another model; expected a model that is whole")
    if any(value is not None for key, value in _entries(config) if key == "quantization_config"):
        raise ValueError("its quantization_config asks for code of others; expected plain weights")
    for path in folder.glob("*.index.json"):  # which part of the weights is in which file
        for name in read_settings(path)["weight_map"].values():
            if Path(name).name != name or not (folder / name).is_file():
                raise ValueError(f"{path.name} names {name}, which is no file in its folder")


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
    with needing("a model that is no file or folder here, but a name on the hub,"):
        import huggingface_hub as hub
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


def _reason(error: Exception) -> str:
    """The first sentence of an error."""
    if isinstance(error, pickle.UnpicklingError):  # whose advice is to load it all the same
        return "its weights are damaged, or hold more than tensors and might run code"
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".")


@contextmanager
def _quiet() -> Iterator[None]:
    """Without bars, notes and warnings of ``transformers``: this library never prints."""
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
    """Without bars of downloads."""
    from huggingface_hub import utils

    before = utils.are_progress_bars_disabled()
    utils.disable_progress_bars()
    try:
        yield
    finally:
        if not before:
            utils.enable_progress_bars()


@dataclass(frozen=True)
class Layout:
    """Where the files of a model are.

    Attributes
    ----------
    graph
        Of the images' tower, or of the only one.
    text
        Of the text tower, if there is one.
    folders
        Those that may have settings, the nearest first.
    """

    graph: Path
    text: Path | None
    folders: tuple[Path, ...]

    def find(self, name: str) -> Path | None:
        """A file of settings, if it is there."""
        return next((f / name for f in self.folders if (f / name).is_file()), None)


def find_layout(model: str | Path, precision: str) -> Layout:
    """The parts of a file, of a folder, or of a name on the hub, which is downloaded once."""
    graph = Path(model)
    if not graph.is_file():
        if graph.suffix == ".onnx":
            raise InputError(f"{model}: there is no such file; check the path")
        folder = graph
        if not folder.is_dir():
            check_model(model)
            folder = snapshot(str(model), lambda names: needed(names, precision, model))
        names = [file.relative_to(folder).as_posix() for file in folder.rglob("*.onnx")]
        graph = folder / needed(names, precision, model)[-1]
    folder = graph.absolute().parent
    text = folder / graph.name.replace("vision_model", "text_model")
    has_text = text.name != graph.name and text.is_file()
    return Layout(graph, text if has_text else None, (folder, folder.parent))


def needed(names: Sequence[str], precision: str, model: str | Path) -> list[str]:
    """Of all files that a model has, those that are needed; last the graph that takes images.

    >>> names = ["onnx/model.onnx", "onnx/model.onnx_data", "config.json", "model.bin"]
    >>> needed(names, "float32", "name")
    ['onnx/model.onnx_data', 'config.json', 'onnx/model.onnx']
    """
    endings = ENDINGS[precision]
    candidates = [
        f"{folder}{kind}{ending}.onnx"
        for kind in ("vision_model", "model")
        for folder in ("onnx/", "")
        for ending in endings
    ]
    graph = next((name for name in candidates if name in names), None)
    if graph is None:
        found = sorted(name for name in names if name.endswith(".onnx"))
        raise InputError(
            f"{model}: there is no vision_model{endings[0]}.onnx or model{endings[0]}.onnx in it "
            f"nor in onnx/ (found: {', '.join(found) or 'none'}); give a file, or another "
            "encoder.precision"
        )
    graphs = (graph, graph.replace("vision_model", "text_model"))
    weights = {f"{name}{end}" for name in graphs for end in ("", "_data", ".data")} - {graph}
    return [n for n in names if n in weights or PurePosixPath(n).name in SETTINGS] + [graph]
