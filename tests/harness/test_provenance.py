"""Which code, packages and machine made a study."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from harness import provenance
from harness.provenance import entry, git_commit, read, record


def test_the_commit_of_this_code() -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip("not a git checkout")
    assert entry()["commit"] == done.stdout.strip()
    assert isinstance(entry()["changed"], bool)


def test_another_repository_around_it_is_not_ours(tmp_path: Path) -> None:
    """Code installed below somebody else's repository does not take that repository's commit."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    commit = ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x"]
    subprocess.run(["git", "-C", str(tmp_path), *commit], check=True)
    theirs = subprocess.run(
        ["git", "-C", str(tmp_path), "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    )
    assert git_commit(tmp_path)[0] != theirs.stdout.strip()


def test_the_same_run_again_is_one_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record(tmp_path)
    first = read(tmp_path)
    record(tmp_path)
    again = read(tmp_path)
    assert len(again) == 1
    assert again[0]["first"] == first[0]["first"]
    assert again[0]["last"] >= first[0]["last"]
    made = entry() | {"commit": "0" * 40}
    monkeypatch.setattr(provenance, "entry", lambda: made)
    record(tmp_path)
    assert [item["commit"] for item in read(tmp_path)][1] == "0" * 40


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 2, "entries": [{}]}', '{"schema": 1, "entries": 3}'])
def test_a_damaged_file_is_no_reason_to_stop(tmp_path: Path, text: str) -> None:
    (tmp_path / provenance.FILE).write_text(text)
    assert read(tmp_path) == []
    record(tmp_path)
    assert len(read(tmp_path)) == 1


def test_nothing_of_the_user_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    record(tmp_path)
    text = (tmp_path / provenance.FILE).read_text()
    assert "sk-canary" not in text
    assert socket.gethostname() not in text
    assert str(Path.home()) not in text
    assert set(json.loads(text)["entries"][0]) >= {
        "commit",
        "packages",
        "python",
        "processor",
        "cores",
        "memory_gib",
        "gpus",
    }
