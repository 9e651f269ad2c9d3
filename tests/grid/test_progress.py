"""What people see while a study runs."""

from __future__ import annotations

import io

from harness.estimate import clock
from harness.progress import Lines, Progress, display
from tests.grid.samples import episode


class Kept:
    def __init__(self):
        self.lines, self.told = [], []

    def show(self, text, finished):
        self.lines.append((text, finished))

    def tell(self, text):
        self.told.append(text)

    def close(self):
        self.told.append("closed")


def test_failures_are_counted_by_kind_as_they_come():
    kept = Kept()
    progress = Progress(4, kept)
    for task, status in (("a", "done"), ("b", "timeout"), ("c", "truncated"), ("b", "done")):
        progress.seen(episode(task, status))
    texts = [text for text, _ in kept.lines]
    assert texts[0].startswith("1 done, 0 failed, 3 left")
    assert "1 done, 1 failed, 2 left" in texts[1]
    assert texts[1].endswith("failures: 1 actor timeout")
    assert "/s, " in texts[1]
    assert "/s" not in texts[0]  # one row is no rate
    assert texts[3].startswith("3 done, 0 failed, 1 left")  # the retry took the place of the time-out
    assert kept.lines[3][1] == 3


def test_plain_lines_where_there_is_no_terminal():
    out = io.StringIO()
    lines = display(2, out)
    assert isinstance(lines, Lines)
    lines.show("first", 1)
    lines.tell("said")
    lines.close()
    assert out.getvalue() == "said\nfirst\n"
    assert "\x1b" not in out.getvalue()


def test_the_bar_draws_and_keeps_markup_of_others_out():
    out = io.StringIO()
    bar = display(2, out, live=True)
    bar.show("[red]1 done", 1)
    bar.tell("[bold]told")
    bar.close()
    assert "[red]1 done" in out.getvalue()
    assert "[bold]told" in out.getvalue()


def test_times_are_readable():
    assert [clock(s) for s in (None, 4.21, 123, 3900)] == ["unknown time", "4.2 s", "2 min 03 s", "1 h 05 min"]
