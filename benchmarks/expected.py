"""The accuracy that ``/classes`` expects, beside test accuracy. ``python -m benchmarks.expected``.

Fifty classes of each feature file in FRUGALVAE_DATA, 12 samples each, taught in ten tasks; the
correlation is over classes.
"""

from __future__ import annotations

import numpy as np

from frugalvae.bench.data_sources import in_data_folder
from frugalvae.images.feature_file import load_features
from frugalvae.model import Model, Recipe

FILES = ("cifar100-efficientnet_lite0", "cub200-efficientnet_lite0", "ucf101-clip_vit_b32")
CLASSES, SAMPLES, TASKS = 50, 12, 10


def main() -> None:
    print("| | expected | test | correlation |\n| --- | --- | --- | --- |")
    for name in FILES:
        for path in in_data_folder(f"{name}.npz"):
            features = load_features(path)
            x, y = features.x_train, features.y_train
            classes, model = np.unique(y)[:CLASSES], Model(Recipe(calibrate=True))
            for part in np.array_split(classes, TASKS):
                rows = np.concatenate([np.flatnonzero(y == label)[:SAMPLES] for label in part])
                model = model.learn(x[rows], y[rows])
            test = np.isin(features.y_test, classes)
            right = model.predict(features.x_test[test]) == features.y_test[test]
            found = model.expected_accuracy()
            expected = np.array([found[label] for label in model.classes.tolist()])
            measured = np.array([right[features.y_test[test] == y].mean() for y in model.classes])
            agreement = np.corrcoef(expected, measured)[0, 1]
            print(f"| {name} | {expected.mean():.1%} | {right.mean():.1%} | {agreement:.2f} |")


if __name__ == "__main__":
    main()
