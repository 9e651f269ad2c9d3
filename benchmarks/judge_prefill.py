"""Shared prefill: K candidates in both orders over one state, against independent full prompts.

    python benchmarks/judge_prefill.py [--model smollm2] [--dtype float32] [--rounds 3] [--episodes 1] [--threads 2]

One run, the ways taken in turn in every round, medians and ratios of CPU time and of wall time:
  apart    eight independent full prompts as one padded batch
  cold     the state run once, eight suffixes behind it
  kept     the same with the state's keys and values kept from the last call (second question of a review)
  episode  ten growing states: apart against the engine with its cache kept across the steps
and the largest difference of the A/B/T logits, the decisions, and how often bfloat16 decides otherwise.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from methods.judges.engine import Engine
from methods.judges.prompt import Encoder, Prompt
from methods.judges.weights import Loaded, load

THINGS = ("mug", "apple", "plate", "knife", "book", "towel", "candle", "laptop", "pen", "bowl")
PLACES = ("cabinet", "drawer", "shelf", "fridge", "countertop", "sinkbasin", "dresser", "desk")
K = 4


STATE = 4  # the step whose state has some 450 tokens


def views(episode: int, steps: int = 10) -> list[str]:
    """Growing views in the manner of ALFWorld; the one of step `STATE` has some 450 tokens with the prompt's rules."""
    places = [f"{place} {i}" for i in (1, 2, 3) for place in PLACES]
    lines = [
        f"Task: put a clean {THINGS[episode % 10]} in {PLACES[episode % 8]}.",
        f"Observation: You are in the middle of a room. Looking quickly around you, you see {', '.join(places[:18])}.",
    ]
    found = []
    for step in range(steps):
        place = places[(5 * step + episode) % len(places)]
        seen = [f"{THINGS[(step + episode + i) % 10]} {1 + (step + i) % 3}" for i in range(5)]
        lines += [f"Action: go to {place}", f"Observation: On the {place}, you see a {', a '.join(seen)}."]
        found.append("\n".join(lines))
    return found


def pairs(step: int) -> list[tuple[str, str]]:
    """K candidates against a proposal, in both orders."""
    proposal = f"go to {PLACES[step % 8]} 1"
    others = [f"take {THINGS[(step + i) % 10]} 1 from {PLACES[(step + 2 * i + 1) % 8]} 2" for i in range(K)]
    return [(a, proposal) for a in others] + [(proposal, a) for a in others]


def apart(loaded: Loaded, prefix: Sequence[int], suffixes: Sequence[Sequence[int]]) -> Any:
    """Full prompts as one right-padded batch, in the plainest way: (suffixes, width)."""
    import torch

    full = [[*prefix, *suffix] for suffix in suffixes]
    length = max(map(len, full))
    ids = torch.tensor([one + [loaded.pad] * (length - len(one)) for one in full], device=loaded.device)
    mask = torch.tensor([[1] * len(one) + [0] * (length - len(one)) for one in full], device=loaded.device)
    with torch.inference_mode():
        hidden = loaded.model.base_model(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state
    return hidden[list(range(len(full))), [len(one) - 1 for one in full]]


def letters(loaded: Loaded, encoder: Encoder, hidden: Any) -> Any:
    """(suffixes, 3) fp32 logits."""
    import torch

    with torch.inference_mode():
        return loaded.model.get_output_embeddings()(hidden)[:, list(encoder.letters())].float().cpu()


def timed(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """(CPU seconds of this process, wall seconds, result)."""
    cpu, wall = time.process_time(), time.perf_counter()
    found = work()
    if found is not None and getattr(found, "is_cuda", False):
        import torch

        torch.cuda.synchronize()
    return time.process_time() - cpu, time.perf_counter() - wall, found


class Bench:
    """A model with its engine, and the encoded questions."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded
        self.encoder = Encoder(loaded.tokenizer, Prompt())
        self.engine = Engine(loaded)

    def question(self, view: str, step: int) -> tuple[list[int], list[list[int]]]:
        """Prefix and suffixes."""
        return self.encoder.prefix(view), [self.encoder.pair(view, a, b) for a, b in pairs(step)]

    def one_state(self) -> dict[str, tuple[float, float]]:
        """Times of one state, each way."""
        prefix, suffixes = self.question(views(0)[STATE], STATE)
        self.engine.forget()
        way = {
            "apart": lambda: apart(self.loaded, prefix, suffixes),
            "cold": lambda: self.engine.run(prefix, suffixes).hidden,
            "kept": lambda: self.engine.run(prefix, suffixes).hidden,
        }
        return {name: timed(work)[:2] for name, work in way.items()}

    def episode(self) -> dict[str, tuple[float, float]]:
        """Times of ten growing states, each way, steps interleaved."""
        self.engine.forget()
        sums = {"apart": [0.0, 0.0], "engine": [0.0, 0.0]}
        for step, view in enumerate(views(1)):
            prefix, suffixes = self.question(view, step)
            for name, work in (
                ("apart", lambda p=prefix, s=suffixes: apart(self.loaded, p, s)),
                ("engine", lambda p=prefix, s=suffixes: self.engine.run(p, s).hidden),
            ):
                cpu, wall, _ = timed(work)
                sums[name][0] += cpu
                sums[name][1] += wall
        return {name: (cpu, wall) for name, (cpu, wall) in sums.items()}

    def logits(self, full: bool, episodes: int = 2) -> Any:
        """Logits over growing episodes, by full prompts or by the engine with its cache kept."""
        import torch

        self.engine.forget()
        found = []
        for number in range(episodes):
            for step, view in list(enumerate(views(number)))[::3]:
                prefix, suffixes = self.question(view, step)
                hidden = apart(self.loaded, prefix, suffixes) if full else self.engine.run(prefix, suffixes).hidden
                found.append(letters(self.loaded, self.encoder, hidden))
        return torch.cat(found)


def median(rounds: Sequence[dict[str, tuple[float, float]]]) -> dict[str, dict[str, float]]:
    """Median CPU and wall seconds of each way."""
    return {
        name: {
            "cpu_s": statistics.median(one[name][0] for one in rounds),
            "wall_s": statistics.median(one[name][1] for one in rounds),
        }
        for name in rounds[0]
    }


def speedups(rounds: Sequence[dict[str, tuple[float, float]]], base: str = "apart") -> dict[str, Any]:
    """Median over rounds of the ratio to `base`, by CPU and by wall time."""
    return {
        name: [round(statistics.median(one[base][i] / one[name][i] for one in rounds), 2) for i in (0, 1)]
        for name in rounds[0]
        if name != base
    }


def agreement(one: Any, other: Any) -> dict[str, float]:
    """Largest logit difference, and the share of decisions that differ."""
    return {
        "max_logit_difference": float((one - other).abs().max()),
        "decisions": len(one),
        "decisions_differ": int((one.argmax(-1) != other.argmax(-1)).sum()),
    }


def main() -> None:
    """Run and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--episodes", type=int, default=1)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--skip-bf16", action="store_true")
    given = parser.parse_args()
    import torch

    if given.threads:
        torch.set_num_threads(given.threads)
    bench = Bench(load(given.model, dtype=given.dtype))
    prefix, suffixes = bench.question(views(0)[STATE], STATE)
    bench.one_state()  # warm up
    singles = [bench.one_state() for _ in range(given.rounds)]
    print(f"one state: {speedups(singles)}", file=sys.stderr)
    episodes = [bench.episode() for _ in range(given.episodes)]
    print(f"episode: {speedups(episodes)}", file=sys.stderr)
    report: dict[str, Any] = {
        "model": given.model,
        "dtype": given.dtype,
        "threads": torch.get_num_threads(),
        "state_tokens": len(prefix),
        "suffix_tokens": [len(suffix) for suffix in suffixes],
        "one_state": median(singles),
        "one_state_speedup_cpu_wall": speedups(singles),
        "episode": median(episodes),
        "episode_speedup_cpu_wall": speedups(episodes),
        "engine_against_full": agreement(bench.logits(False), bench.logits(True)),
    }
    if not given.skip_bf16:
        exact, half = bench.logits(True), Bench(load(given.model, dtype="bfloat16"))
        report["bf16_full_against_fp32"] = agreement(half.logits(True), exact)
        report["bf16_engine_against_bf16_full"] = agreement(half.logits(False), half.logits(True))
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
