"""Small models as exports lie on the Hugging Face hub: graphs in ``onnx/``, settings above."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from frugalvae.encoders.conversion import Graph, _value, message

SETTINGS = (
    "config.json",
    "preprocessor_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
)


def export_clip(source: Path, folder: Path) -> Path:
    """Both towers of a CLIP."""
    from transformers import CLIPTextModelWithProjection, CLIPVisionModelWithProjection

    images, texts = (
        kind.from_pretrained(source, attn_implementation="eager")
        for kind in (CLIPVisionModelWithProjection, CLIPTextModelWithProjection)
    )
    export(images, folder / "onnx" / "vision_model.onnx", ["image_embeds", "last_hidden_state"])
    export(texts, folder / "onnx" / "text_model.onnx", ["text_embeds"])
    return with_settings(source, folder)


def export_siglip(source: Path, folder: Path) -> Path:
    """Both towers of a SigLIP."""
    from transformers import SiglipTextModel, SiglipVisionModel

    images, texts = (
        kind.from_pretrained(source, attn_implementation="eager")
        for kind in (SiglipVisionModel, SiglipTextModel)
    )
    outputs = ["last_hidden_state", "pooler_output"]
    export(images, folder / "onnx" / "vision_model.onnx", outputs)
    export(texts, folder / "onnx" / "text_model.onnx", outputs)
    return with_settings(source, folder)


def export_dino(source: Path, folder: Path, outputs: list[str]) -> Path:
    """A network of images alone."""
    from transformers import AutoModel

    network = AutoModel.from_pretrained(source, attn_implementation="eager")
    export(network, folder / "onnx" / "model.onnx", outputs)
    return with_settings(source, folder)


def with_settings(source: Path, folder: Path) -> Path:
    for name in SETTINGS:
        if (source / name).exists():
            shutil.copy(source / name, folder)
    return folder


def export(network: Any, path: Path, outputs: list[str]) -> None:
    """A network of ``transformers`` as ONNX, by PyTorch's own exporter."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnx")

    class Chosen(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network.eval()

        def forward(self, x: Any) -> Any:
            found = self.network(**{given: x})
            return tuple(found[name] for name in outputs)

    config = network.config
    if hasattr(config, "vocab_size"):
        given, example = "input_ids", torch.ones(2, config.max_position_embeddings).long()
    else:
        given, example = "pixel_values", torch.zeros(2, 3, config.image_size, config.image_size)
    path.parent.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            Chosen(),
            (example,),
            str(path),
            input_names=[given],
            output_names=outputs,
            dynamic_axes={name: {0: "n"} for name in (given, *outputs)},
            dynamo=False,
        )


def save_siglip(folder: Path, seed: int = 0) -> Path:
    """A small SigLIP with a tokenizer of whole words."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import (
        PreTrainedTokenizerFast,
        SiglipConfig,
        SiglipImageProcessorPil,
        SiglipModel,
    )

    sizes = {
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
    }
    words = ["<unk>", "</s>", "a", "photo", "of", "cat", "dax", "black", "footed", "albatross"]
    config = SiglipConfig(
        text_config=sizes | {"vocab_size": len(words), "max_position_embeddings": 64},
        vision_config=sizes | {"image_size": 32, "patch_size": 8},
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        SiglipModel(config).save_pretrained(folder)
    vocabulary = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Lowercase(), normalizers.Replace(".", "")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing("$A </s>", None, [("</s>", 1)])
    whole = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="</s>",
        eos_token="</s>",
        unk_token="<unk>",
        model_max_length=64,
    )
    whole.save_pretrained(folder)
    SiglipImageProcessorPil(size={"height": 32, "width": 32}).save_pretrained(folder)
    return folder


def save_dino(folder: Path, version: int) -> Path:
    """A small DINOv2 or DINOv3."""
    import torch
    import transformers

    name = {2: "Dinov2", 3: "DINOv3ViT"}[version]
    config = getattr(transformers, f"{name}Config")(
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        image_size=32,
        patch_size=8,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        getattr(transformers, f"{name}Model")(config).save_pretrained(folder)
    square, text = {"height": 32, "width": 32}, '{"image_processor_type": "%s"%s}'
    if version == 2:
        told = {"size": {"shortest_edge": 40}, "crop_size": square}
        transformers.BitImageProcessorPil(**told).save_pretrained(folder)
    else:  # whose processor needs torchvision
        more = ', "size": {"height": 32, "width": 32}, "do_center_crop": null'
        written = text % ("DINOv3ViTImageProcessorFast", more)
        (folder / "preprocessor_config.json").write_text(written)
    return folder


def linear(path: Path, *, outputs: str = "features", **how: Any) -> Path:
    """The least network: averages of colours, times a matrix. It needs no PyTorch."""
    onnx = pytest.importorskip("onnx")
    kind = how.pop("type", onnx.TensorProto.FLOAT)
    weights = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind)
    domain = how.pop("domain", "")
    nodes = [
        onnx.helper.make_node("GlobalAveragePool", ["images"], ["averages"]),
        onnx.helper.make_node("Flatten", ["averages"], ["flat"]),
        onnx.helper.make_node("MatMul", ["flat", "weights"], [outputs], domain=domain),
    ]
    graph = onnx.helper.make_graph(
        nodes,
        "averages",
        [onnx.helper.make_tensor_value_info("images", kind, ["n", 3, "h", "w"])],
        [onnx.helper.make_tensor_value_info(outputs, kind, ["n", 5])],
        [onnx.numpy_helper.from_array(weights.astype(dtype), "weights")],
    )
    opsets = [onnx.helper.make_opsetid("", 17)]
    if domain:
        opsets.append(onnx.helper.make_opsetid(domain, 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    model = onnx.helper.make_model(graph, ir_version=8, opset_imports=opsets)
    onnx.save_model(model, path, **how)
    return path


def named(location: str, tag: int = 13) -> bytes:
    """Weights "w" of three colours that stand in another file, however their field is written."""
    entries = [("location", location), ("length", "60")]
    told = [(tag, message([(1, key), (2, value)])) for key, value in entries]
    return message([(1, 3), (1, 5), (2, 1), (8, "w"), *told, (14, 1)])


def forged(where: str, tensor: bytes) -> bytes:
    """The same network as ``linear``, with its weights, or a tensor besides, anywhere."""
    graph = Graph("images", ["n", 3, "h", "w"])
    flat = graph.add("Flatten", graph.add("GlobalAveragePool", "images"))
    weights, more = "w", b""
    product = message([(1, flat), (1, "w"), (2, "y"), (4, "MatMul")])
    if where == "graph":
        graph.constants.append(tensor)
    elif where == "constant":
        value = message([(1, "value"), (5, tensor), (20, 4)])
        graph.nodes.append(message([(2, "w"), (4, "Constant"), (5, value)]))
    elif where == "nested graph":
        inner = message([(1, product), (2, "g"), (5, tensor), (12, _value("y", ["n", 5]))])
        branches = [
            (5, message([(1, f"{branch}_branch"), (6, inner), (20, 5)]))
            for branch in ("then", "else")
        ]
        graph.constants.append(message([(2, 9), (8, "yes"), (9, b"\1")]))
        graph.nodes.append(message([(1, "yes"), (2, "features"), (4, "If"), *branches]))
        return graph.to_bytes("features", ["n", 5])
    else:
        weights = graph.constant(np.ones((3, 5), np.float32))
        more = {
            "inside": b"",
            "function": message([(25, message([(1, "f"), (11, message([(5, tensor)]))]))]),
            "training": message([(20, message([(1, message([(5, tensor)]))]))]),
            "sparse": message([(7, message([(15, message([(1, tensor)]))]))]),
        }[where]
    return graph.to_bytes(graph.add("MatMul", flat, weights), ["n", 5]) + more
