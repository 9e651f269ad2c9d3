"""The advice text: a user's own file, and what is said when it cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.records import Action
from methods.interventions import ADVICE, advice_of, message_template


def test_the_built_in_text_names_proposal_and_winners_in_order() -> None:
    winners = (Action("go north", "go north"), Action("look", "look"))
    advice = advice_of(Action("wait", "wait"), winners, message_template(None))
    assert "You were about to execute: wait" in advice.message
    assert advice.message.index("1. go north") < advice.message.index("2. look")
    assert advice.recommended == winners


def test_a_text_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "advice.txt"
    file.write_text("Not $proposal; $alternatives, which costs $5.")
    said = advice_of(Action("wait", "wait"), (Action("look", "look"),), message_template(str(file))).message
    assert said == "Not wait; 1. look, which costs $5."
    assert message_template(str(file)) != ADVICE


def test_a_text_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Cannot read the prompt file"):
        message_template(str(tmp_path / "none.txt"))
    (tmp_path / "short.txt").write_text("Not $proposal.")
    with pytest.raises(UsageError, match=r"lacks the placeholder\(s\) \$alternatives"):
        message_template(str(tmp_path / "short.txt"))
