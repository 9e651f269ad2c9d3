"""A little world for judge tests: a shelf of colours, where the action that names the wanted colour is better."""

from __future__ import annotations

import random
from typing import Any

COLOURS = ("red", "green", "blue", "black", "white", "pink", "brown", "grey")


def view_of(wanted: str, shelf: list[str], done: list[str]) -> str:
    """A view in the manner of the environments' renderers."""
    steps = [f"{i}. {action} -> option chosen" for i, action in enumerate(done, 1)] or ["none"]
    lines = [f"Request: I want a lamp in {wanted}", "Steps so far:", *steps, f"Option shade: {', '.join(shelf)}"]
    return "\n".join(lines)


def pair_rows(groups: int, split: str, seed: int, environment: str = "shelf") -> list[dict[str, Any]]:
    """Pairs in both orders, labels by rule."""
    draw = random.Random(seed)
    rows = []
    for number in range(groups):
        shelf = draw.sample(COLOURS, 4)
        wanted = draw.choice(shelf)
        view = view_of(wanted, shelf, [])
        values = {colour: float(colour == wanted) for colour in shelf}
        for i, one in enumerate(shelf):
            for other in shelf[i + 1 :]:
                gap = values[one] - values[other]
                label = "T" if gap == 0 else "A" if gap > 0 else "B"
                if label == "T" and draw.random() < 0.6:
                    continue
                pair = (f"click[{one}]", f"click[{other}]")
                for order, (first, second) in enumerate((pair, pair[::-1])):
                    rows.append(
                        {
                            "environment": environment,
                            "task_id": f"{split}-{number}",
                            "split": split,
                            "group": f"g{number}",
                            "view": view,
                            "first": first,
                            "second": second,
                            "label": label if order == 0 else {"A": "B", "B": "A", "T": "T"}[label],
                            "q_first": values[one if order == 0 else other],
                            "q_second": values[other if order == 0 else one],
                            "order": order,
                            "pair_id": f"{split}-{number}-{one}-{other}",
                        }
                    )
    return rows


def critic_rows(groups: int, split: str, seed: int) -> list[dict[str, Any]]:
    """Records of the same world; every action is seen twice with different remaining steps."""
    draw = random.Random(seed)
    rows = []
    for number in range(groups):
        shelf = draw.sample(COLOURS, 4)
        wanted = draw.choice(shelf)
        for colour in shelf:
            for remaining in (1, 3):
                rows.append(
                    {
                        "environment": "shelf",
                        "task_id": f"{split}-{number}",
                        "split": split,
                        "view": view_of(wanted, shelf, []),
                        "action": f"click[{colour}]",
                        "step": 0,
                        "outcome": float(colour == wanted),
                        "remaining": remaining,
                        "depth": 0,
                    }
                )
    return rows


def tiny_comparator(seed: int = 0, prompt: Any = None) -> Any:
    """(model, tokenizer, encoder) of an untrained tiny comparator."""
    from methods.judges.prompt import Encoder, Prompt
    from methods.training import tiny

    prompt = prompt or Prompt()
    texts = [view_of(c, list(COLOURS), []) + f" click[{c}]" for c in COLOURS] + [prompt.system, prompt.candidates]
    documents = [("task", text) for text in texts]
    tokenizer = tiny.make_tokenizer(documents, tiny.Size(width=32, layers=2, heads=2, inner=64, vocabulary=400))
    model = tiny.make_model(tokenizer, "lm", seed, tiny.Size(width=32, layers=2, heads=2, inner=64, vocabulary=400))
    return model.eval(), tokenizer, Encoder(tokenizer, prompt)
