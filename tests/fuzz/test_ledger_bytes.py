"""Whatever happens to a ledger's bytes: what is read is what was written, and everything else is a `LedgerError`."""

from __future__ import annotations

import contextlib
import tempfile
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness import frames
from harness.errors import UsageError
from harness.ledger import FILE, Ledger, LedgerError, read, read_episodes, read_heads
from harness.records import Episode
from tests.fuzz.test_codec_roundtrip import JSON
from tests.synthetic import make_episode, planned_cells

(CELL,) = planned_cells(methods=("cota",), actors=("weak",), environments=("retail",), seeds=(0,), tasks=5)
EPISODES = [make_episode(CELL, f"retail-{i}", steps=1 + i) for i in range(4)]
NEW = make_episode(CELL, "retail-4", steps=1)


def _written() -> bytes:
    with tempfile.TemporaryDirectory() as name:
        with Ledger(Path(name)) as ledger:
            for episode in EPISODES:
                ledger.append(episode)
        return (Path(name) / FILE).read_bytes()


WHOLE = _written()
PLACE = st.integers(min_value=0, max_value=len(WHOLE) - 1)
EDIT = st.one_of(
    st.tuples(st.just("flip"), PLACE, st.integers(0, 7)),
    st.tuples(st.just("cut"), PLACE, st.integers(1, 400)),
    st.tuples(st.just("put"), PLACE, st.binary(min_size=1, max_size=60)),
    st.tuples(st.just("end"), PLACE, st.none()),
    st.tuples(st.just("sign"), PLACE, st.just(frames.SIGNATURE)),
)


def damaged(edits: list[tuple[str, int, Any]]) -> bytes:
    data = bytearray(WHOLE)
    for kind, at, what in edits:
        at = min(at, max(0, len(data) - 1))
        if kind == "flip" and data:
            data[at] ^= 1 << what
        elif kind == "cut":
            del data[at : at + what]
        elif kind in ("put", "sign"):
            data[at:at] = what
        elif kind == "end":
            del data[at:]
    return bytes(data)


def check(data: bytes) -> None:
    """Read, recover, go on, read again."""
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name)
        (folder / FILE).write_bytes(data)
        try:
            found = list(read_episodes(folder))
        except LedgerError:
            return
        assert all(episode in EPISODES for episode in found)
        with Ledger(folder) as ledger:
            assert set(ledger.statuses()) == {(episode.cell, episode.task_id) for episode in found}
            for episode in [*(episode for episode in EPISODES if episode not in found), NEW]:
                ledger.append(episode)
        key = _key
        assert sorted(read_episodes(folder), key=key) == sorted([*EPISODES, NEW], key=key)
        for torn in folder.glob("ledger.torn-*"):
            assert torn.stat().st_size > 0


def _key(episode: Episode) -> str:
    return episode.task_id


@given(st.lists(EDIT, min_size=1, max_size=4))
def test_edited_bytes(edits: list[tuple[str, int, Any]]) -> None:
    check(damaged(edits))


@given(st.binary(max_size=200))
def test_random_bytes(data: bytes) -> None:
    check(data)
    check(frames.SIGNATURE + data)
    check(WHOLE + data)


@settings(max_examples=40)
@given(JSON, JSON)
def test_good_frames_of_bad_records(head: Any, body: Any) -> None:
    """Somebody may write frames with right checksums around anything: never another exception."""
    odd = {"schema": 1, "cell": "c", "task_id": "t", "status": "done", "x": head}
    for given_head in (head, {"schema": 1, "x": head}, {**odd, "cell": head}, {**odd, "status": head}, odd):
        try:
            record = frames.pack(given_head, body)
        except ValueError:
            return
        with tempfile.TemporaryDirectory() as name:
            (Path(name) / FILE).write_bytes(record)
            for work in (read_heads, lambda folder: list(read_episodes(folder)), _open):
                with contextlib.suppress(UsageError):
                    work(Path(name))


def _open(folder: Path) -> None:
    with Ledger(folder) as ledger:
        ledger.append(NEW)


def test_a_record_that_inflates_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert frames.MAX_TEXT <= 256 << 20
    monkeypatch.setattr(frames, "MAX_TEXT", 1_000_000)
    bomb = frames.pack({"schema": 1, "cell": "c", "task_id": "t", "status": "done"}, {"x": "a" * 3_000_000})
    (tmp_path / FILE).write_bytes(bomb)
    assert len(bomb) < 10_000
    found = read(tmp_path)
    with pytest.raises(LedgerError, match="inflates to more than"):
        found.episode(found.frames[0])
    endless = frames.pack({"schema": 1, "cell": "c" * 3_000_000}, {})
    assert isinstance(next(frames.scan(memoryview(endless))), frames.Damage)
