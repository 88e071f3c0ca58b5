"""Threads and shares: work that outlives its request keeps its place, and others have theirs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.serving import in_a_loop

pytest.importorskip("starlette", reason="the extra 'serve' is not installed")

from frugalvae.server.guard import CLIENT, RefusedError, Shares, client_of
from frugalvae.server.workers import Workers

ENDS = 10.0  # seconds after which a test has failed, and does not hang
SOON = 0.05  # seconds after which work is late


class Bench:
    """Workers, and work that waits until it is let go."""

    def __init__(self, most: int, each: int, seconds: float = ENDS) -> None:
        self.workers = Workers("test", most, each, seconds)
        self.go, self.begun = threading.Event(), list[str]()

    def ask(self, client: str, work: Callable[[], Any] | None = None, **how: bool) -> Any:
        """A request of a client, as a task."""

        def wait() -> str:
            self.begun.append(client)
            assert self.go.wait(ENDS)
            return client

        async def request() -> Any:
            CLIENT.set(client)
            return await self.workers.run(work or wait, **how)

        return asyncio.create_task(request())

    async def until(self, condition: Callable[[], object]) -> None:
        """Come back when the condition holds; fail when it never does."""
        async with asyncio.timeout(ENDS):
            while not condition():
                await asyncio.sleep(0.001)


def test_a_client_has_its_share_of_the_threads_and_others_have_theirs() -> None:
    async def work() -> None:
        bench = Bench(most=3, each=2)
        slow = [bench.ask("slow") for _ in range(100)]
        await bench.until(lambda: len(bench.begun) == 2)
        assert await bench.ask("other", lambda: "at once") == "at once"
        assert bench.begun == ["slow"] * 2
        bench.go.set()
        assert await asyncio.gather(*slow) == ["slow"] * 100
        assert (bench.workers.working, bench.workers._waiting) == ({}, {})

    in_a_loop(work())


def test_who_has_fewest_comes_first_and_clients_take_turns() -> None:
    async def work() -> None:
        bench, order = Bench(most=1, each=1), list[str]()
        first = bench.ask("z")
        await bench.until(lambda: bench.begun)
        names = ["a", "a", "a", "b", "b", "c"]
        tasks = [bench.ask(name, lambda name=name: order.append(name)) for name in names]  # type: ignore[misc]
        await asyncio.sleep(0)
        bench.go.set()
        await asyncio.gather(first, *tasks)
        assert order == ["a", "b", "c", "a", "b", "a"]

        two = Bench(most=2, each=2)
        ends = threading.Event()
        held = [two.ask("a"), two.ask("b", lambda: ends.wait(ENDS))]
        await two.until(lambda: two.workers.working.total() == 2)
        later = [two.ask("a"), two.ask("c")]
        await asyncio.sleep(0)
        ends.set()  # b has none now, and a has one
        await two.until(lambda: len(two.workers._waiting) == 1)
        assert two.workers.working == {"a": 1, "c": 1}
        two.go.set()
        await asyncio.gather(*held, *later)

    in_a_loop(work())


def test_late_work_keeps_its_place_until_its_thread_ends() -> None:
    """Else each request that is too late would take one more thread."""

    async def work() -> None:
        bench = Bench(most=2, each=1, seconds=SOON)
        with pytest.raises(
            RefusedError, match=r"no answer within 0\.05 s: the server is busy"
        ) as late:
            await bench.ask("slow")
        assert (late.value.status, late.value.headers) == (503, {"Retry-After": "5"})
        assert (bench.workers.working, bench.workers.late) == ({"slow": 1}, {"slow": 1})
        for _ in range(3):
            with pytest.raises(RefusedError, match="still busy with earlier requests") as again:
                await bench.ask("slow", lambda: 1)
            assert (again.value.status, again.value.headers) == (503, {"Retry-After": "5"})
        assert await bench.ask("other", lambda: "answered") == "answered"
        bench.go.set()
        await bench.until(lambda: not bench.workers.working)
        assert bench.workers.late == {}
        assert await bench.ask("slow", lambda: "again") == "again"

    in_a_loop(work())


def test_when_all_threads_are_late_everyone_is_sent_away_at_once() -> None:
    async def work() -> None:
        bench = Bench(most=2, each=1, seconds=SOON)
        late = await asyncio.gather(bench.ask("a"), bench.ask("b"), return_exceptions=True)
        assert all(isinstance(one, RefusedError) for one in late)
        with pytest.raises(RefusedError, match="still busy with earlier requests"):
            await bench.ask("c", lambda: 1)
        bench.go.set()
        await bench.until(lambda: not bench.workers.working)
        assert await bench.ask("c", lambda: 1) == 1

    in_a_loop(work())


def test_who_waits_too_long_for_a_place_is_sent_away_and_leaves_no_trace() -> None:
    async def work() -> None:
        bench = Bench(most=2, each=2, seconds=ENDS)
        held = [bench.ask("a"), bench.ask("a")]
        await bench.until(lambda: len(bench.begun) == 2)
        bench.workers.seconds = SOON
        with pytest.raises(RefusedError, match="no answer within"):
            await bench.ask("b", lambda: 1)
        assert (bench.workers._waiting, bench.workers.late) == ({}, {})
        bench.go.set()
        await asyncio.gather(*held)
        assert bench.workers.working == {}

    in_a_loop(work())


def test_a_place_that_comes_at_the_last_moment_is_given_on() -> None:
    async def work() -> None:
        bench = Bench(most=1, each=1)
        held = bench.ask("a")
        await bench.until(lambda: bench.begun)
        leaves, stays = bench.ask("b"), bench.ask("c", lambda: "c")
        leave = bench.workers._leave

        def leave_and_cancel(client: str) -> None:
            leave(client)  # now b has the place
            leaves.cancel()

        bench.workers._leave = leave_and_cancel  # type: ignore[method-assign]
        bench.go.set()
        async with asyncio.timeout(ENDS):
            assert (await held, await stays) == ("a", "c")
        await bench.until(lambda: not bench.workers.working)
        assert (leaves.cancelled(), bench.begun) == (True, ["a"])

    in_a_loop(work())


def test_what_goes_to_the_end_is_waited_for_once_it_has_begun() -> None:
    """Nobody is told that a change was too late when it was made."""

    async def work() -> None:
        bench = Bench(most=1, each=1, seconds=SOON)
        change, other = bench.ask("a", to_the_end=True), bench.ask("b", to_the_end=True)
        with pytest.raises(RefusedError, match="no answer within"):
            await other
        assert not change.done()
        bench.go.set()
        assert await change == "a"
        assert bench.begun == ["a"]

    in_a_loop(work())


def test_work_goes_on_when_its_client_leaves() -> None:
    async def work() -> None:
        bench = Bench(most=1, each=1)
        change = bench.ask("a", to_the_end=True)
        await bench.until(lambda: bench.begun)
        change.cancel()
        await asyncio.gather(change, return_exceptions=True)
        assert bench.workers.working == {"a": 1}
        bench.go.set()
        await bench.until(lambda: not bench.workers.working)

    in_a_loop(work())


def test_errors_of_the_work_are_its_own() -> None:
    def fail() -> None:
        raise TimeoutError("of the network")

    async def work() -> None:
        bench = Bench(most=1, each=1)
        with pytest.raises(TimeoutError, match="of the network"):
            await bench.ask("a", fail)
        await bench.until(lambda: not bench.workers.working)

    in_a_loop(work())


# --------------------------------------------------------------------------- shares


def test_shares_are_bounded_for_each_and_for_all() -> None:
    shares = Shares("things", most=3, each=2)
    shares.take("a", 2)
    with pytest.raises(
        RefusedError, match="^more than 2 things from one address; try again soon$"
    ) as own:
        shares.take("a")
    assert (own.value.status, own.value.headers) == (429, {"Retry-After": "1"})
    shares.take("b")
    with pytest.raises(RefusedError, match="^more than 3 things; try again soon$") as all_of_them:
        shares.take("c")
    assert (all_of_them.value.status, all_of_them.value.headers) == (503, {"Retry-After": "1"})
    assert (shares.total, shares.of) == (3, {"a": 2, "b": 1})
    shares.give_back("a")
    shares.take("c")
    shares.give_back("a")

    def fail() -> None:
        with shares.taken("a"):
            assert (shares.total, shares.of) == (3, {"a": 1, "b": 1, "c": 1})
            raise ValueError("whatever")

    with pytest.raises(ValueError, match="whatever"):
        fail()
    assert (shares.total, shares.of) == (2, {"b": 1, "c": 1})


@pytest.mark.parametrize(
    ("address", "name"),
    [
        (("192.0.2.7", 1), "192.0.2.7"),
        (("::ffff:192.0.2.7", 1, 0, 0), "192.0.2.7"),
        (("2001:db8:0:1::1", 1, 0, 0), "2001:db8:0:1::/64"),
        (("2001:db8:0:1:ffff::2", 1, 0, 0), "2001:db8:0:1::/64"),
        (("2001:db8:0:2::1", 1, 0, 0), "2001:db8:0:2::/64"),
        (("fe80::1%eth0", 1, 0, 2), "fe80::/64"),
        (("testclient", 1), "testclient"),
        (None, ""),
    ],
)
def test_a_client_is_an_address_or_a_network_that_one_has_alone(address: Any, name: str) -> None:
    assert client_of(address) == name
