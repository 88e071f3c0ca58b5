"""Requests of all kinds at a server that is killed again and again: nothing answered is lost."""

from __future__ import annotations

import http.client
import random
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from frugalvae.digests import digest
from frugalvae.storage.model_file import load
from lab.benchmarks.serving import Served

NAMES = ("ant", "bee", "cow", "doe", "elk")


@dataclass
class Tally:
    """What became of the requests.

    Attributes
    ----------
    learned
        Pictures by class whose learning was answered with success.
    sent
        All that were sent, whatever became of them.
    """

    answered: int = 0
    unanswered: int = 0
    kills: int = 0
    learned: dict[int, str] = field(default_factory=dict)
    sent: dict[int, str] = field(default_factory=dict)


def mixed_with_kills(
    served: Served, picture: Callable[[int], bytes], numbers: range, every: float, clients: int = 4
) -> Tally:
    """Ask, teach and look, while the server is killed about every so many seconds.

    Parameters
    ----------
    picture, numbers
        A picture of each number, all of them different; and the number of each request.
    """
    tally, lock, done = Tally(), threading.Lock(), threading.Event()
    chance = random.Random(0)
    killer = threading.Thread(target=kill, args=(served, tally, done, every))
    killer.start()

    def one(number: int) -> None:
        content, name = picture(number), NAMES[number % len(NAMES)]
        kind = number % 4
        try:
            if kind < 2:
                with lock:
                    tally.sent[digest(content)] = name
                reply = served.send("/learn", [content], name=name)
                if reply.status == 200 and reply.json["learned"] == 1:
                    with lock:
                        tally.learned[digest(content)] = name
            elif kind == 2:
                reply = served.raw("/predict?top=3&unknown=1", content)
            else:
                reply = served.get(chance.choice(["/status", "/classes", "/history", "/recent"]))
            assert reply.status < 500 or reply.status == 503, reply.content
            with lock:
                tally.answered += 1
        except (OSError, http.client.HTTPException):  # it was killed, or is not there yet
            with lock:
                tally.unanswered += 1
            time.sleep(0.05)

    try:
        with ThreadPoolExecutor(clients) as pool:
            list(pool.map(one, numbers))
    finally:
        done.set()
        killer.join()
    return tally


def kill(served: Served, tally: Tally, done: threading.Event, every: float) -> None:
    """Kill the server now and then, and start it again."""
    chance = random.Random(1)
    while not done.wait(every * chance.uniform(0.5, 1.5)):
        served.stop(signal.SIGKILL)
        served.start()
        tally.kills += 1


def lost(served: Served, tally: Tally) -> list[str]:
    """What is wrong with the file after all of it."""
    model = load(served.file)
    number_of = dict(zip(model.classes.tolist(), model.numbers.tolist(), strict=True))
    wrong = []
    for name in NAMES:
        kept = set(model.digests.get(number_of.get(name, -1), np.empty(0)).tolist())
        promised = {one for one, label in tally.learned.items() if label == name}
        possible = {one for one, label in tally.sent.items() if label == name}
        if promised - kept:
            wrong.append(f"{len(promised - kept)} pictures of {name} were answered, and are lost")
        if kept - possible:
            wrong.append(f"{len(kept - possible)} pictures of {name} were never sent")
    counted = int(model.n_samples_of_class.sum())
    kept_in_all = sum(map(len, model.digests.values()))
    if counted != kept_in_all:
        wrong.append(f"{counted} samples are counted, and {kept_in_all} digests are kept")
    return wrong
