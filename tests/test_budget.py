"""How large each room may be: limits only fall, and what is larger fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import budget


def test_a_room_that_is_too_large_or_has_no_limit_fails() -> None:
    now = {"room": {"cli": 800, "new": 10}, "whole": {"docs, words": 90}}
    lines, fits = budget.table(now, {"room": {"cli": 700, "new": 10}, "whole": {"docs, words": 90}})
    assert not fits
    assert lines[1].split() == ["cli", "800", "700", "TOO", "LARGE"]
    lines, fits = budget.table(now, {"room": {"cli": 800}, "whole": {"docs, words": 90}})
    assert not fits
    assert lines[2].endswith("NO LIMIT")


def test_limits_fall_and_never_rise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "LIMITS", tmp_path / "budget.toml")
    sizes = {"room": {"cli": 800, "server": 500}, "whole": {"docs, words": 90}}
    monkeypatch.setattr(budget, "count", lambda: sizes)
    assert budget.main([]) == 1  # nothing has a limit yet
    assert budget.main(["--lower"]) == 0
    sizes["room"] = {"cli": 700, "server": 600}
    assert budget.main(["--lower"]) == 1  # the server has grown
    assert budget.read_limits()["room"] == {"cli": 750, "server": 550}
