"""Prefix-cache benchmark: what the server's prefix cache is worth to a review, measured on a real server.

One episode of growing states; at each step one review of K candidates in one order (K comparisons). Three ways:
`cold` (each request begins with other text, so nothing is shared), `together` (state first, all K at once) and `ahead`
(state first, one sent before the others). Cached tokens are the server's own numbers.

    python -m benchmarks.prefix_cache http://127.0.0.1:8000/v1 MODEL
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from uuid import uuid4

from harness.models.client import Endpoint
from harness.protocols import Question
from harness.records import Action, Ballot, DecisionState, Observation, Usage
from methods.judges.served import ServedComparator

STATE = DecisionState("benchmark", "0", "task", Observation("o"))


def view(episode: str, step: int) -> str:
    """An append-only view of about 40 tokens a step."""
    seen = "You arrive at shelf {0}. On the shelf you see a cup {0}, a plate {0}."
    lines = [f"> go to shelf {i}\n" + seen.format(i) for i in range(step)]
    return f"Episode {episode}. Put a clean cup into the cabinet.\n" + "\n".join(lines)


class Cold(ServedComparator):
    """Begins each prompt with text of its own."""

    def _ask(self, question: Question, pair: tuple[Action, Action]) -> Ballot:
        return super()._ask(replace(question, view=f"{uuid4()} {question.view}"), pair)


def measure(judge: ServedComparator, steps: list[int], k: int) -> tuple[list[float], Usage]:
    """(seconds of each review, usage of all)."""
    episode, seconds, usage = str(uuid4()), [], Usage()
    pairs = [(Action(f"open cabinet {i}", f"open cabinet {i}"), Action("look", "look")) for i in range(k)]
    for step in steps:
        began = time.perf_counter()
        ballots = judge.compare(Question(STATE, view(episode, step)), pairs)
        seconds.append(time.perf_counter() - began)
        usage = sum((ballot.usage for ballot in ballots), usage)
    return seconds, usage


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("model")
    parser.add_argument("--k", type=int, default=4)
    parser.add_argument("--steps", type=int, default=8, help="reviews of one episode")
    parser.add_argument("--first", type=int, default=8, help="steps in the first state's history")
    given = parser.parse_args()
    Endpoint(given.url, given.model).complete({"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1})
    steps = list(range(given.first, given.first + given.steps))
    ways: dict[str, Callable[[], ServedComparator]] = {
        "cold": lambda: Cold(given.url, given.model, send_ahead=False),
        "ahead": lambda: ServedComparator(given.url, given.model, send_ahead=True),
        "together": lambda: ServedComparator(given.url, given.model, send_ahead=False),
    }
    for name, make in ways.items():
        seconds, usage = measure(make(), steps, given.k)
        share = "unknown" if usage.cached is None or not usage.prompt else f"{usage.cached / usage.prompt:.1%}"
        later = sum(seconds[1:]) / max(1, len(seconds) - 1)
        print(
            f"{name:9} {sum(seconds):7.2f} s for {len(steps)} reviews of {given.k}; first {seconds[0]:.2f} s, later "
            f"{later:.2f} s each; {usage.prompt} prompt tokens, {share} from the prefix cache"
        )


if __name__ == "__main__":
    main()
