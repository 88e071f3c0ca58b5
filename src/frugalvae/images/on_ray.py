"""Shards as tasks of Ray: the bytes of the images go there, features come back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from frugalvae.cluster import Cluster
from frugalvae.errors import FrugalError
from frugalvae.images.decode import reading_images
from frugalvae.images.shards import AHEAD, Encoded, Shard, ahead, encode, prepare, reason
from frugalvae.images.walk import File
from frugalvae.interfaces import Encoder
from frugalvae.progress import track

WAITING = 2  # shards that are at hand for processes that become free
DECODERS = 2  # threads that decode beside the network, which may be on a GPU

_loaded: dict[str, Encoder] = {}  # of a process of Ray, which works on many shards


def encode_on_ray(
    shards: Sequence[Shard], encoder: Encoder, batch_size: int, cluster: Cluster
) -> Iterator[tuple[Shard, Encoded]]:
    """Encode shards in parallel, and give each back when it is done, in any order.

    The encoder goes into Ray's object store once, and only a few shards are in memory at
    a time: machines of a cluster need this package installed, but no files in common.
    """
    shared, key = [cluster.ray.put(encoder.to("cpu"))], json.dumps(encoder.identity)
    task = cluster.task(_encode)
    counter = track(range(sum(len(shard.files) for shard in shards)), "encoding images")
    left, running = iter(shards), dict[Any, Shard]()
    try:
        while True:
            for shard in islice(left, max(cluster.slots + WAITING - len(running), 0)):
                contents = [_content(file) for file in shard.files]
                running[task.remote(shared, key, contents, batch_size)] = shard
            if not running:
                return
            for ref in cluster.ray.wait(list(running), num_returns=1)[0]:
                shard = running.pop(ref)
                yield shard, _result(cluster.ray, ref)
                list(islice(counter, len(shard.files)))  # which tells the listener
    finally:
        for ref in running:
            cluster.ray.cancel(ref, force=True)


def _content(file: File) -> bytes | str:
    """The bytes of a file; or why it cannot be read."""
    try:
        return file.read()
    except Exception as error:  # zipfile fails in many ways
        return reason(error)


def _result(ray: Any, ref: Any) -> Encoded:
    try:
        encoded: Encoded = ray.get(ref)
        return encoded
    except ray.exceptions.RayError as error:
        raise FrugalError(
            f"Ray gave up encoding ({type(error).__name__}: {reason(error)}); a process that "
            "dies may be out of memory: try a smaller --batch-size or fewer --jobs. What is "
            "finished is kept, and the same command goes on"
        ) from error


def _encode(shared: list[Any], key: str, contents: list[bytes | str], batch_size: int) -> Encoded:
    """What a task does, in a process of Ray."""
    import ray

    if key not in _loaded:
        _loaded.clear()
        _loaded[key] = ray.get(shared[0]).to(None)
    encoder = _loaded[key]

    def ready(content: bytes | str) -> Any:
        return content if isinstance(content, str) else prepare(encoder, File(lambda: content))

    with reading_images():
        images = ahead(ready, contents, DECODERS, AHEAD * batch_size)
        return encode(encoder, images, batch_size)
