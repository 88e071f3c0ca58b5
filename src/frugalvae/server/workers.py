"""Workers: threads for what takes long, shared among clients."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from frugalvae.server.refusals import RefusedError
from frugalvae.server.shares import CLIENT

T = TypeVar("T")

RETRY = 5  # seconds after which somebody who was sent away may try again


class Workers:
    """Threads for work that takes long: ``most`` at a time, and ``each`` of them for one client.

    A thread cannot be ended. So its place is given back when its work ends, and not when its
    request does; who has no place left but for such work is sent away at once. Of those who wait
    for a place, the client with the fewest comes first.
    """

    def __init__(self, name: str, most: int, each: int, seconds: float) -> None:
        self.most, self.each, self.seconds = most, each, seconds
        self.working, self.late = Counter[str](), Counter[str]()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._pool = ThreadPoolExecutor(most, name)

    async def run(self, work: Callable[[], T], *, to_the_end: bool = False) -> T:
        """What ``work`` gives, in a thread; or a refusal if that takes too long.

        ``to_the_end``, work that has begun is waited for however long it takes, also if the
        client leaves: nobody is told that nothing was changed when something was.
        """
        client, running = CLIENT.get(), None
        try:
            async with asyncio.timeout(self.seconds) as limit:
                await self._place(client)
                running = asyncio.get_running_loop().run_in_executor(self._pool, work)
                running.add_done_callback(lambda _: self._leave(client))
                if to_the_end:
                    limit.reschedule(None)
                return await asyncio.shield(running)
        except TimeoutError:
            if not limit.expired():  # it is the work's own
                raise
            if running is not None and not running.done():
                self.late[client] += 1
                running.add_done_callback(lambda _: less(self.late, client))
            raise RefusedError(
                503,
                f"no answer within {self.seconds:g} s: the server is busy; "
                "try again later, with fewer images",
                RETRY,
            ) from None

    async def _place(self, client: str) -> None:
        """Come back with a place."""
        if self.late[client] >= self.each or self.late.total() >= self.most:
            raise RefusedError(
                503, "the server is still busy with earlier requests; try again later", RETRY
            )
        if self.working[client] < self.each and self.working.total() < self.most:
            self.working[client] += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(client, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._forget(client, turn)
            else:  # the place came at the last moment
                self._leave(client)
            raise

    def _leave(self, client: str) -> None:
        """Give a place back, to whoever waits and has the fewest; of these, to the first."""
        less(self.working, client)
        waiting = [name for name in self._waiting if self.working[name] < self.each]
        if waiting:
            first = min(waiting, key=lambda name: self.working[name])
            turn = self._waiting[first][0]
            self._forget(first, turn)
            self.working[first] += 1
            turn.set_result(None)

    def _forget(self, client: str, turn: asyncio.Future[None]) -> None:
        """Somebody does not wait any more; others of the client come after other clients."""
        turns = self._waiting.pop(client)
        turns.remove(turn)
        if turns:
            self._waiting[client] = turns

    def close(self) -> None:
        """Finish what is begun."""
        self._pool.shutdown()


def less(counter: Counter[str], name: str) -> None:
    """One less of a name, which is not remembered when none is left."""
    counter[name] -= 1
    if not counter[name]:
        del counter[name]
