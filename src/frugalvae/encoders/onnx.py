"""Networks in ONNX: how a model is read, what computes it, and an encoder of any such model.

A file is a message of protocol buffers: a row of fields, each a number and a value, the numbers
those of ``onnx.proto``. Large weights may stand in other files, which the graph names. ONNX
Runtime would open paths that it finds there. So they are read here, from the graph's own folder
alone, and all is handed over in memory: what was digested is what it computes with. What it might
read otherwise is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frugalvae.encoders.defaults import (
    COMPARED,
    CONFIGS,
    LARGEST_SIDE,
    ModelEncoder,
    Preprocessing,
    drawn_image,
    from_config,
    mark,
    read_config,
    read_settings,
    sentence,
)
from frugalvae.encoders.hub import ENDINGS, Layout, find_layout
from frugalvae.errors import InputError, check_choice, check_number, needing
from frugalvae.maths.arrays import unit

# --------------------------------------------------------------------------- reading

VARINT, BYTES = 0, 2  # how a field's value is written
FORMS = {VARINT: 0, 1: 8, BYTES: 0, 5: 4}  # and how long it is, if that is fixed
#: The messages inside a message. What else may stand in it, and names no file, is in PLAIN.
INSIDE = {
    "model": {7: "graph"},
    "graph": {1: "node", 5: "weights"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "nested graph", 10: "tensor", 11: "nested graph"},
    "nested graph": {1: "node", 5: "tensor"},
    "weights": {13: "entry"},
}
_GRAPH, _TENSOR = {2, 10, 11, 12, 13, 14, 16}, {*range(1, 13), 14, 16}
PLAIN = {
    "model": {1, 2, 3, 4, 5, 6, 8, 14},
    "graph": _GRAPH,
    "nested graph": _GRAPH,
    "node": {1, 2, 3, 4, 6, 7, 8, 9},
    "attribute": {1, 2, 3, 4, 7, 8, 9, 13, 14, 15, 20, 21},
    "weights": _TENSOR,
    "tensor": _TENSOR,
    "entry": {1, 2},
}
#: What exporters write that is refused, as people call it.
REFUSED = {
    ("model", 20): "training information",
    ("model", 25): "functions",
    ("graph", 15): "sparse weights",
    ("tensor", 13): "weights in another file that are none of its graph's own",
}
DEEPEST = 64  # graphs in nodes of graphs


@dataclass(frozen=True)
class OnnxModel:
    """A graph, and the files that it names."""

    content: bytes
    files: dict[str, bytes] = field(default_factory=dict)

    @cached_property
    def digest(self) -> str:
        """A short name of every byte of it: other weights, another name."""
        digest = hashlib.sha256(self.content)
        for name, content in sorted(self.files.items()):  # of fixed lengths: none passes for two
            digest.update(hashlib.sha256(name.encode()).digest())
            digest.update(hashlib.sha256(content).digest())
        return digest.hexdigest()[:16]


def read_model(path: Path) -> OnnxModel:
    """A model of a file; what it names must lie in its folder."""
    if not path.is_file():
        raise InputError(f"{path}: no file, or none that ends; copy it anew")
    try:
        content = path.read_bytes()
        names = sorted(set(named_files(content)))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: no ONNX file ({error}); copy it anew") from error
    return OnnxModel(content, {name: _in_its_folder(path, name).read_bytes() for name in names})


def _in_its_folder(path: Path, name: str) -> Path:
    """A file in the folder of another; a link may lead to where that one's leads.

    Only a plain name is one: ONNX Runtime takes ``./w`` for ``w``, and some paths for addresses.
    """
    plain = "\0" not in name and all(
        name == kind(name).name for kind in (PurePosixPath, PureWindowsPath)
    )
    found = (path.parent / name).resolve() if plain else path
    homes = (path.parent.resolve(), path.resolve().parent)
    if not plain or found.parent not in homes:
        raise InputError(
            f"{path}: it wants to read {name}, which is not in its folder; use a model that "
            "keeps its weights next to itself"
        )
    if not found.is_file():
        raise InputError(f"{path}: its weights are in {name}, which is missing; copy it as well")
    return found


def named_files(content: bytes) -> Iterator[str]:
    """The files that the weights of a model stand in.

    Whatever else might name one is refused: ONNX Runtime opens files of nested graphs by itself.

    >>> list(named_files(b""))
    []
    """
    waiting = [("model", 0, len(content), 0)]
    while waiting:
        kind, start, end, depth = waiting.pop()
        if depth > 4 * DEEPEST:
            raise ValueError("its graphs are nested too deep")
        entry: dict[int, bytes] = {}
        for number, form, first, last in fields(content, start, end):
            inner = INSIDE.get(kind, {}).get(number)
            if inner is not None and form == BYTES:
                waiting.append((inner, first, last, depth + 1))
            elif number not in PLAIN[kind]:
                what = REFUSED.get((kind, number), f"a field {number} in its {kind}")
                raise ValueError(f"it has {what}, which is not read here; export it without")
            elif kind == "entry":
                entry[number] = content[first:last]
        if entry.get(1) == b"location":
            yield entry.get(2, b"").decode()


def fields(content: bytes, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Number, wire type, start and end of the value of each field of a message.

    What ONNX Runtime might take for something else is refused: it reads 32 bits of a tag.

    >>> list(fields(bytes.fromhex("08ac02120161"), 0, 6))
    [(1, 0, 1, 3), (2, 2, 5, 6)]
    """
    while start < end:
        tag, start = varint_at(content, start, end)
        number, form = tag >> 3, tag & 7
        if not number or tag >= 2**32 or form not in FORMS:
            raise ValueError("it is not in the format of protocol buffers")
        if form == VARINT:
            _, last = varint_at(content, start, end)
        else:
            length = FORMS[form]
            if form == BYTES:
                length, start = varint_at(content, start, end)
            last = start + length
        if last > end:
            raise ValueError("it is cut off")
        yield number, form, start, last
        start = last


def varint_at(content: bytes, start: int, end: int) -> tuple[int, int]:
    """A number that stands somewhere, and where it ends."""
    value = 0
    for shift, place in zip(range(0, 70, 7), range(start, end), strict=False):
        value |= (content[place] & 127) << shift
        if content[place] < 128:
            if value >= 2**64:
                raise ValueError("it has a number of more than 64 bits")
            return value, place + 1
    raise ValueError("it is cut off, or has a number of more than 64 bits")


# --------------------------------------------------------------------------- computing

QUIET = 4  # of ONNX Runtime's levels, only what is fatal: other errors are exceptions as well
TYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
}


class Network:
    """A graph in the format ONNX, ready to compute; it can go to another process.

    Parameters
    ----------
    model
        The graph, and the files that it names.
    threads
        How many may compute; by default ``OMP_NUM_THREADS`` of them, or one a core.
    device
        ``"cpu"`` or ``"cuda"``; ``None`` takes a GPU if this ONNX Runtime can use one.
    path
        Where the model can be read again; without it, a copy is kept.
    """

    def __init__(
        self,
        model: OnnxModel,
        threads: int | None = None,
        device: str | None = None,
        path: Path | None = None,
    ) -> None:
        if threads is not None:
            check_number("threads", threads, 0, 1_024, whole=True)
        self.kept, self.threads = path or model, threads
        self.digest = model.digest if path else ""
        self._open(model, device)

    def to(self, device: str | None) -> None:
        """Compute there from now on."""
        self._open(self._model(), device)

    def _model(self) -> OnnxModel:
        if isinstance(self.kept, OnnxModel):
            return self.kept
        model = read_model(self.kept)
        if model.digest != self.digest:
            raise InputError(f"{self.kept}: it was changed since it was loaded; start again")
        return model

    def _open(self, model: OnnxModel, device: str | None) -> None:
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.log_severity_level = QUIET
        options.intra_op_num_threads = self.threads or allowed_threads()
        options.add_session_config_entry(
            "session.intra_op.allow_spinning",
            "0",  # a thread that waits leaves the core to others
        )
        options.add_session_config_entry("session.load_model_format", "ONNX")
        if model.files:
            sizes = [len(content) for content in model.files.values()]
            options.add_external_initializers_from_files_in_memory(
                list(model.files), list(model.files.values()), sizes
            )
        providers = _providers(device, ort.get_available_providers())
        try:  # its fallback prints
            self.session = ort.InferenceSession(
                model.content, options, providers, enable_fallback=0
            )
            self.session._model_bytes = None  # which it would keep for that
        except Exception as error:  # ONNX Runtime has ten kinds, with no base in common
            raise InputError(f"ONNX Runtime cannot load the network ({_line(error)})") from error

    @property
    def metadata(self) -> dict[str, str]:
        """What the file says of itself."""
        return self.session.get_modelmeta().custom_metadata_map

    @property
    def inputs(self) -> dict[str, int]:
        """How many axes each input has."""
        return {given.name: len(given.shape) for given in self.session.get_inputs()}

    @property
    def outputs(self) -> dict[str, int]:
        """How many axes each output has."""
        return {given.name: len(given.shape) for given in self.session.get_outputs()}

    def run(self, output: str, inputs: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
        """One output for some inputs, which are converted to what the network takes."""
        types = {given.name: TYPES.get(given.type) for given in self.session.get_inputs()}
        ready = {name: np.ascontiguousarray(x, types[name]) for name, x in inputs.items()}
        try:
            [found] = self.session.run([output], ready)
        except Exception as error:  # as above
            raise InputError(f"ONNX Runtime cannot compute the network ({_line(error)})") from error
        return np.asarray(found, np.float32)

    def __getstate__(self) -> tuple[OnnxModel, int | None]:
        return self._model(), self.threads

    def __setstate__(self, state: tuple[OnnxModel, int | None]) -> None:
        self.__init__(*state, device="cpu")  # type: ignore[misc]


def allowed_threads() -> int:
    """How many threads ``OMP_NUM_THREADS`` allows; 0 if it says nothing."""
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(first) if first.isdecimal() else 0


def _providers(device: str | None, available: Sequence[str]) -> list[str]:
    """What computes, by preference.

    >>> _providers(None, ["CPUExecutionProvider"])
    ['CPUExecutionProvider']
    """
    if not isinstance(device, str | None):
        raise InputError(f"device is {device!r}; expected 'cpu' or 'cuda'")
    gpu, cpu = "CUDAExecutionProvider", "CPUExecutionProvider"
    may_use_gpu = device is None or device.startswith("cuda")
    if device is not None and may_use_gpu and gpu not in available:
        raise InputError(
            f"device {device!r}: this ONNX Runtime computes on the processor alone; "
            "pip install onnxruntime-gpu, or leave the device out"
        )
    return [gpu, cpu] if may_use_gpu and gpu in available else [cpu]


def _line(error: Exception) -> str:
    """An error of ONNX Runtime without its number, in one line."""
    return str(error).strip().partition("\n")[0].rpartition(" : ")[2] or type(error).__name__


# --------------------------------------------------------------------------- encoding

EMBEDDINGS = ("image_embeds", "pooler_output")  # what a feature is, by preference
TOKENS = "last_hidden_state"  # else its first, the token of the class


class OnnxEncoder(ModelEncoder):
    """Images to the features of a network that ONNX Runtime computes.

    A feature is what the graph calls ``image_embeds``, else its ``pooler_output``, else the
    first token of its ``last_hidden_state``, else its only output. Those of CLIP and SigLIP
    have length one: they are compared so with texts.

    Parameters
    ----------
    model
        A file, a folder, or a name on the Hugging Face hub such as
        ``"Xenova/clip-vit-base-patch32"``, which is downloaded once. In a folder the graph is
        ``vision_model.onnx`` or ``model.onnx``, there or in ``onnx/``. Where
        ``text_model.onnx`` and ``tokenizer.json`` are beside it, classes' names have features.
    precision
        ``"float32"``, ``"float16"`` or ``"int8"``: which of the files, where there are several.
    size, mean, std
        Side of the square that the network sees, mean and standard deviation of each colour
        between 0 and 1; in place of what ``preprocessor_config.json`` says.
    device
        Where to compute; ``None`` takes a GPU if there is one.
    threads
        How many may compute; by default ``OMP_NUM_THREADS`` of them, or one a core.

    Examples
    --------
    >>> OnnxEncoder("absent.onnx")
    Traceback (most recent call last):
    ...
    frugalvae.errors.InputError: absent.onnx: there is no such file; check the path
    """

    name = "onnx"

    def __init__(
        self,
        model: str | Path,
        precision: str = "float32",
        size: int | None = None,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
        device: str | None = None,
        threads: int | None = None,
    ) -> None:
        check_choice("precision", precision, ENDINGS)
        if size is not None:
            check_number("size", size, 1, LARGEST_SIDE, whole=True)
        layout = find_layout(model, precision)
        self.model = model
        self.prepared = _preprocessing(
            layout, size=size, crop_size=size, image_mean=mean, image_std=std
        )
        self.digest, self.network = _open_graph(layout.graph, threads, device)
        self.text = layout.text and TextNetwork(layout, threads)
        self.input, self.output = _input_and_output(self.network, layout.graph)
        self.unit = self.output == EMBEDDINGS[0] or _kind(layout).startswith(COMPARED)
        try:
            [feature] = self.encode(self.prepare(drawn_image())[None])
        except InputError as error:
            raise InputError(f"{layout.graph}: {error}; is encoder.size right?") from error
        self.dim, self.probe = len(feature), mark(feature)

    def encode(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        """Features (n, dim)."""
        found = self.network.run(self.output, {self.input: batch})
        features = found[:, 0] if found.ndim == 3 else found  # of (n, tokens, dim) the first
        return unit(features) if self.unit else features

    def text_features(self, names: Sequence[str]) -> NDArray[np.float32] | None:
        """Features of "a photo of a NAME.", of length one; None without a text tower."""
        return unit(self.text.describe(names, self.dim)) if self.text else None

    def to(self, device: str | None) -> OnnxEncoder:
        """Compute there from now on; ``None`` takes a GPU if there is one."""
        self.network.to(device)
        return self


def _open_graph(path: Path, threads: int | None, device: str | None) -> tuple[str, Network]:
    model = read_model(path)
    try:
        return model.digest, Network(model, threads, device, path)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _input_and_output(network: Network, path: Path) -> tuple[str, str]:
    """The input that takes images, and the output that is a feature."""
    inputs, outputs = network.inputs, network.outputs
    if list(inputs.values()) != [4]:
        raise InputError(
            f"{path}: its inputs are {', '.join(inputs)}; expected images alone, as "
            "vision_model.onnx takes them"
        )
    rows = list(outputs) if list(outputs.values()) == [2] else []
    for name in (*EMBEDDINGS, TOKENS, *rows):
        if name in outputs:
            return next(iter(inputs)), name
    raise InputError(
        f"{path}: its outputs are {', '.join(outputs)}; expected {', '.join(EMBEDDINGS)} or "
        f"{TOKENS}, or one output of a row an image"
    )


def _preprocessing(layout: Layout, **given: Any) -> Preprocessing:
    """As the model's configuration says, but for what is given."""
    found = next(filter(None, map(read_config, layout.folders)), None)
    if found is None and None in given.values():
        raise InputError(
            f"{layout.graph}: {CONFIGS[0]} is missing, which defines how images are prepared; copy "
            "it from where the model comes from, or set encoder.size, encoder.mean and encoder.std"
        )
    changed = {name: value for name, value in given.items() if value is not None}
    return from_config({**(found or {}), **changed})


def _kind(layout: Layout) -> str:
    """The kind of model that ``config.json`` names; an empty one if it does not."""
    path = layout.find("config.json")
    try:
        return str(json.loads(path.read_text())["model_type"]) if path else ""
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return ""


# --------------------------------------------------------------------------- text

OUTPUTS = ("text_embeds", "pooler_output")
CONTEXT = {"clip": 77, "siglip": 64, "siglip2": 64}  # tokens, where config.json is silent
AT_ONCE = 16  # sentences


class TextNetwork:
    """The text tower of CLIP or SigLIP, which is loaded when it is first needed, and kept.

    Every sentence is padded to the model's context, with the token that the model's
    tokenizer pads with: CLIP's own end, SigLIP's own padding. The tower does not go to other
    processes with its encoder: they encode images.
    """

    def __init__(self, layout: Layout, threads: int | None) -> None:
        self.layout, self.threads = layout, threads

    @cached_property
    def network(self) -> Network:
        """The tower, loaded."""
        assert self.layout.text is not None
        return Network(read_model(self.layout.text), self.threads, path=self.layout.text)

    def __getstate__(self) -> dict[str, Any]:
        return {"layout": self.layout, "threads": self.threads}

    def describe(self, names: Sequence[str], dim: int) -> NDArray[np.float32]:
        """A feature (k, dim) of each class's name, put into a sentence."""
        tokens, mask = self._tokens([sentence(name) for name in names])
        network, path = self.network, self.layout.text
        output = next((name for name in OUTPUTS if name in network.outputs), None)
        if output is None:
            raise InputError(
                f"{path}: its outputs are {', '.join(network.outputs)}; expected "
                f"{' or '.join(OUTPUTS)}"
            )
        given = {"input_ids": tokens, "attention_mask": mask}
        inputs = {name: given[name] for name in network.inputs if name in given}
        parts = [
            network.run(output, {name: x[at : at + AT_ONCE] for name, x in inputs.items()})
            for at in range(0, len(names), AT_ONCE)
        ]
        features = np.concatenate(parts)
        if features.shape[1] != dim:
            raise InputError(
                f"{path}: its features have {features.shape[1]} numbers, those of images {dim}; "
                "expected both towers of one model"
            )
        return features

    def _tokens(self, texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Tokens (k, context) of texts, and which of them are not padding."""
        with needing("A text tower"):
            import tokenizers
        tokenizer = tokenizers.Tokenizer.from_file(str(self._file("tokenizer.json")))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        path = self._file("tokenizer_config.json")
        token = read_settings(path).get("pad_token")
        text = token.get("content") if isinstance(token, dict) else token
        padding = tokenizer.token_to_id(str(text))
        if padding is None:
            raise InputError(f"{path}: its pad_token {text!r} is not in the vocabulary")
        context = self._context()
        tokens = np.full((len(texts), context), padding, np.int64)
        mask = np.zeros((len(texts), context), np.int64)
        for row, found in enumerate(tokenizer.encode_batch(list(texts))):
            if len(found.ids) > context:
                raise InputError(
                    f"{texts[row]!r} makes {len(found.ids)} tokens; expected at most {context}, "
                    f"the context of {self.layout.text}; give the class another name"
                )
            tokens[row, : len(found.ids)] = found.ids
            mask[row, : len(found.ids)] = 1
        return tokens, mask

    def _context(self) -> int:
        """How many tokens the tower reads."""
        path = self._file("config.json")
        config = read_settings(path)
        found = (config.get("text_config") or {}).get("max_position_embeddings")
        found = found or CONTEXT.get(str(config.get("model_type")))
        if found is None:
            raise InputError(f"{path}: it does not state how long texts may be")
        return int(found)

    def _file(self, name: str) -> Path:
        path = self.layout.find(name)
        if path is None:
            raise InputError(
                f"{self.layout.text}: {name} is missing, which its text tower needs; copy it from "
                "where the model comes from, or remove the text tower"
            )
        return path
