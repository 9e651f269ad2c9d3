"""What people see while a study runs."""

from __future__ import annotations

import io

from harness.estimate import clock
from harness.progress import Lines, Progress, Steps, Units, display
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


def test_units_count_records_and_say_nothing_without_any():
    out = io.StringIO()
    with Units("branches", out):
        pass
    assert out.getvalue() == ""
    with Units("branches", out) as units:
        units(1, 3, {"key": "a", "status": "done", "boundary": None})
        units(2, 3, {"key": "b", "status": "failed", "boundary": "actor"})
        units(3, 3, {"key": "c", "status": "skipped", "boundary": None})
    assert out.getvalue().startswith("branches: 1 done, 1 failed, 0 left, 1 skipped; ")
    assert out.getvalue().rstrip().endswith("to go; failures: 1 actor failed")


def test_steps_tell_pace_and_numbers():
    out = io.StringIO()
    with Steps("training", out) as steps:
        steps(10, 40, {"loss": 0.5, "note": "x"})
        steps(20, 40, {"loss": 0.25})
    assert out.getvalue().startswith("training: 20 done, 20 left; ")
    assert "to go; loss 0.25" in out.getvalue()
