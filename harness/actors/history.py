"""History: a decision state as the messages a chat model reads.

System part, then task with the first observation, then what was done and what came back, the actor's own thoughts with
it.  What can be done now stands in the newest message alone, so that everything before it is the same text at the next
step and a server's prefix cache holds it.  When it gets too long, the oldest steps go, in blocks (again for the prefix
cache), and a note says which.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.actors import prompting
from harness.protocols import Mind
from harness.records import Action, DecisionState, Observation

Message = dict[str, Any]
BLOCK = 5  # steps that are left out together
CHARS_PER_TOKEN = 3.0  # low for English text, so that an estimate is rather too long than too short
_NOTE = re.compile(r"\A\[context: [^\]]*\]\n?")
_CALL = re.compile(r"\A(\w+)\((\{.*\})\)\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Style:
    """How messages are written; `native`: tool calls as such rather than as text."""

    prompts: str | None = None
    native: bool = False


def note(dropped: int) -> str:
    """The mark that a recorded thought begins with when the oldest `dropped` steps were not shown."""
    return f"[context: steps 1 to {dropped} left out]\n" if dropped else ""


def fitting(sizes: Sequence[int], fixed: int, budget: int | None) -> int:
    """How many of the oldest steps to leave out so that characters fit; all but the last if nothing fits."""
    dropped = 0
    while budget is not None and fixed + sum(sizes[dropped:]) > budget and dropped < len(sizes):
        dropped = min(dropped + BLOCK, len(sizes))
    return dropped


def build(state: DecisionState, mind: Mind, style: Style, dropped: int = 0) -> list[Message]:
    """Messages up to the present decision, without the oldest `dropped` steps."""
    system = state.environment
    if style.native and f"{system}-native" in prompting.load(style.prompts):
        system += "-native"
    messages: list[Message] = [
        {"role": "system", "content": prompting.system(style.prompts, system, mind.briefing)},
        {"role": "user", "content": _opening(state, mind, style, dropped)},
    ]
    thoughts = [*mind.thoughts, *[""] * len(state.turns)]
    for index in range(dropped, len(state.turns)):
        turn = state.turns[index]
        last = index == len(state.turns) - 1
        messages.append(said(turn.action, thoughts[index], style, index))
        text = prompting.turn(style.prompts, "turn", observation=turn.observation.text)
        text += _can_do(turn.observation, mind, style) if last else ""
        messages.append(_heard(messages[-1], text))
    return messages


def sizes(state: DecisionState, mind: Mind) -> list[int]:
    """Characters of each executed step, roughly as `build` writes them."""
    thoughts = [*mind.thoughts, *[""] * len(state.turns)]
    return [
        len(turn.action.text) + len(turn.observation.text) + len(thoughts[index]) + 40
        for index, turn in enumerate(state.turns)
    ]


def said(action: Action, thought: str, style: Style, index: int) -> Message:
    """The actor's own turn."""
    thought = _NOTE.sub("", thought).strip()
    call = _CALL.match(action.text) if style.native else None
    if call is None:
        return {"role": "assistant", "content": (f"Thought: {thought}\n" if thought else "") + f"Action: {action.text}"}
    name, arguments = call.groups()
    if name == "respond":
        return {"role": "assistant", "content": str(json.loads(arguments).get("content", ""))}
    function = {"name": name, "arguments": arguments}
    calls = [{"id": f"call_{index}", "type": "function", "function": function}]
    return {"role": "assistant", "content": thought or None, "tool_calls": calls}


def asked_again(proposal: Action, thought: str, text: str, style: Style, index: int) -> list[Message]:
    """The unexecuted proposal and what is said about it, as further turns."""
    own = said(proposal, thought, style, index)
    if "tool_calls" in own:
        held = {"role": "tool", "tool_call_id": own["tool_calls"][0]["id"], "content": "Not executed yet."}
        return [own, held, {"role": "user", "content": text}]
    return [own, {"role": "user", "content": text}]


def _opening(state: DecisionState, mind: Mind, style: Style, dropped: int) -> str:
    text = prompting.turn(style.prompts, "opening", task=state.task, observation=state.opening.text)
    if dropped:
        text += "\n\n" + prompting.turn(style.prompts, "cut", first="1", last=str(dropped))
        text += "\n\n" + prompting.turn(style.prompts, "turn", observation=state.turns[dropped - 1].observation.text)
    if dropped == len(state.turns):
        text += _can_do(state.observation, mind, style)
    return text


def _heard(own: Message, text: str) -> Message:
    if "tool_calls" in own:
        return {"role": "tool", "tool_call_id": own["tool_calls"][0]["id"], "content": text}
    return {"role": "user", "content": text}


def _can_do(observation: Observation, mind: Mind, style: Style) -> str:
    """Executable actions now; open-ended ones that the briefing describes already are not repeated."""
    listed = [*observation.actions, *(schema for schema in observation.schemas if schema not in mind.briefing)]
    if not listed or style.native:
        return ""
    return "\n\n" + prompting.turn(style.prompts, "actions", actions="\n".join(f"- {text}" for text in listed))


def begun_action(can: Observation) -> tuple[str, str]:
    """Beginning and end of the only action there can be, such as (" search[", "]"); empty where there is a choice."""
    found = re.match(r"\w+\[", can.schemas[0]) if len(can.schemas) == 1 and not can.actions else None
    return (f" {found.group()}", "]") if found else ("", "")
