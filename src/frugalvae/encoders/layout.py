"""Where the parts of a model in ONNX are, as exports lie on the Hugging Face hub."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from frugalvae.encoders.hub import check_model, snapshot
from frugalvae.encoders.processor import CONFIGS
from frugalvae.errors import InputError

#: How files end whose numbers have that precision.
ENDINGS = {"float32": ("",), "float16": ("_fp16",), "int8": ("_int8", "_quantized", "_uint8")}
FOLDERS = ("onnx/", "")
SETTINGS = (*CONFIGS, "config.json", "tokenizer.json", "tokenizer_config.json")


@dataclass(frozen=True)
class Layout:
    """The files of a model.

    Attributes
    ----------
    graph
        Of the images' tower, or of the only one.
    text
        Of the text tower, if there is one.
    settings
        Folders that may have settings, the nearest first.
    """

    graph: Path
    text: Path | None
    settings: tuple[Path, ...]

    def setting(self, name: str) -> Path | None:
        """A file of settings, if it is there."""
        return next((f / name for f in self.settings if (f / name).is_file()), None)


def find_layout(model: str | Path, precision: str) -> Layout:
    """The parts of a file, of a folder, or of a name on the hub, which is downloaded once."""
    path = Path(model)
    if path.is_file():
        return _around(path)
    if path.suffix == ".onnx":
        raise InputError(f"{model}: there is no such file; check the path")
    if not path.is_dir():
        check_model(model)
        path = snapshot(str(model), lambda names: needed(names, precision, model))
    names = [file.relative_to(path).as_posix() for file in path.rglob("*.onnx")]
    return _around(path / needed(names, precision, model)[-1])


def _around(graph: Path) -> Layout:
    folder = graph.absolute().parent
    text = folder / graph.name.replace("vision_model", "text_model")
    has_text = text.name != graph.name and text.is_file()
    return Layout(graph, text if has_text else None, (folder, folder.parent))


def needed(names: Sequence[str], precision: str, model: str | Path) -> list[str]:
    """Of all files that a model has, those that are needed, its graph last.

    >>> names = ["onnx/model.onnx", "onnx/model.onnx_data", "config.json", "model.bin"]
    >>> needed(names, "float32", "name")
    ['onnx/model.onnx_data', 'config.json', 'onnx/model.onnx']
    """
    graph = find_graph(names, precision)
    if graph is None:
        found = sorted(name for name in names if name.endswith(".onnx"))
        expected = f"vision_model{ENDINGS[precision][0]}.onnx or model{ENDINGS[precision][0]}.onnx"
        raise InputError(
            f"{model}: there is no {expected} in it nor in onnx/ (found: "
            f"{', '.join(found) or 'none'}); give a file, or another encoder.precision"
        )
    graphs = (graph, graph.replace("vision_model", "text_model"))
    weights = {f"{name}{end}" for name in graphs for end in ("", "_data", ".data")} - {graph}
    return [n for n in names if n in weights or PurePosixPath(n).name in SETTINGS] + [graph]


def find_graph(names: Sequence[str], precision: str) -> str | None:
    """The graph that takes images.

    >>> find_graph(["onnx/model.onnx", "onnx/vision_model.onnx"], "float32")
    'onnx/vision_model.onnx'
    """
    for kind in ("vision_model", "model"):
        for folder in FOLDERS:
            for ending in ENDINGS[precision]:
                if (name := f"{folder}{kind}{ending}.onnx") in names:
                    return name
    return None
