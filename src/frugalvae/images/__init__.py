"""Images: which are in a folder, how they are decoded, and how they become feature files."""

from pathlib import Path

#: Images that an encoder takes at a time. More are no faster on a processor, and take
#: 10 MB each: ``python -m lab.benchmarks.encoding batches``.
BATCH_SIZE = 4

#: Methods of packing in a zip that are read: stored and deflated. Others have no limit on memory.
UNPACKED = (0, 8)


def holds_features(path: Path) -> bool:
    """Whether a path is a feature file, not images."""
    return path.suffix == ".npz" and not path.is_dir()
