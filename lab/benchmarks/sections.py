"""A data set of texts: descriptions of Debian's packages, and the section that each belongs to.

Run as ``python -m lab.benchmarks.sections MODEL -o sections.npz`` on a Debian system, after
``apt-get update``. MODEL is a sentence encoder that transformers can load, such as
sentence-transformers/all-MiniLM-L6-v2, or a folder with one.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from pathlib import Path

import numpy as np
import torch

from frugalvae.images.feature_file import Features, write_features

FEWEST, MOST, TRAIN, TEST = 90, 160, 100, 60  # descriptions of a section
LENGTH, BATCH = 300, 32  # characters of a description, and descriptions that are encoded at once


def main() -> None:
    """Write the feature file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("-o", "--output", type=Path, default=Path("sections.npz"))
    options = parser.parse_args()
    listed = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, check=True)
    texts = {
        name: found
        for name, found in sorted(by_section(listed.stdout).items())
        if len(found) >= FEWEST
    }
    print(f"{sum(map(len, texts.values())):,} descriptions of {len(texts)} sections")
    write_features(options.output, encoded(texts, options.model, options.output.stem))
    print(f"wrote {options.output}")


def by_section(listed: str) -> dict[str, list[str]]:
    r"""One description of each source package, by section.

    >>> by_section("Package: nethack\nSection: games\nDescription: a dungeon crawl")
    {'games': ['a dungeon crawl']}
    """
    found: dict[str, list[str]] = {}
    seen: set[str] = set()
    for package in listed.split("\n\n"):
        section = re.search(r"^Section: (.*)$", package, re.MULTILINE)
        description = re.search(r"^Description(?:-en)?: (.*(?:\n .*)*)", package, re.MULTILINE)
        source = re.search(r"^Source: (\S+)", package, re.MULTILINE)
        source = source or re.search(r"^Package: (\S+)", package, re.MULTILINE)
        if not (section and description and source):
            continue
        text = " ".join(description[1].split())[:LENGTH]
        if source[1] in seen or text in seen:
            continue
        seen |= {source[1], text}
        found.setdefault(section[1].split("/")[-1], []).append(text)
    return found


def encoded(texts: dict[str, list[str]], model: str, name: str) -> Features:
    """Some descriptions of each section to train on, and others to test."""
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)
    network = AutoModel.from_pretrained(model).eval()
    rng = np.random.default_rng(0)
    parts: dict[str, list[np.ndarray]] = {"x_train": [], "y_train": [], "x_test": [], "y_test": []}
    for label, found in enumerate(texts.values()):
        chosen = [found[row] for row in rng.permutation(len(found))[:MOST]]
        x = np.concatenate(
            [embed(tokenizer, network, chosen[i : i + BATCH]) for i in range(0, len(chosen), BATCH)]
        )
        train = min(TRAIN, len(x) - 30)
        for split, rows in (("train", x[:train]), ("test", x[train : train + TEST])):
            parts[f"x_{split}"].append(rows)
            parts[f"y_{split}"].append(np.full(len(rows), label))
    names = np.array(list(texts))
    joined = {key: np.concatenate(rows) for key, rows in parts.items()}
    joined |= {key: names[joined[key]] for key in ("y_train", "y_test")}
    return Features(name, **joined)


@torch.no_grad()
def embed(tokenizer: object, network: object, texts: list[str]) -> np.ndarray:
    """Features (n, d) of texts, of length one: the mean over their tokens."""
    tokens = tokenizer(texts, padding=True, truncation=True, max_length=256, return_tensors="pt")  # type: ignore[operator]
    states = network(**tokens).last_hidden_state  # type: ignore[operator]  # (n, tokens, d)
    mask = tokens["attention_mask"][:, :, None].to(states)
    means = (states * mask).sum(dim=1) / mask.sum(dim=1)  # (n, d)
    return torch.nn.functional.normalize(means, dim=1).numpy()


if __name__ == "__main__":
    main()
