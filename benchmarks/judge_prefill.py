"""Shared prefill: K candidates in both orders over one state, against independent full prompts.

    python benchmarks/judge_prefill.py [--model smollm2] [--dtype float32] [--seconds 200] [--threads 1]

One growing episode; at each step the ways are taken in turn, so that all meet the same load of the machine:
  apart   eight independent full prompts as one batch, hidden states of the last tokens alone through the head
  cold    the state run once, eight suffixes behind it, nothing kept from before
  kept    the same with keys and values kept from the steps before
`one_state` is the step of some 450 tokens, taken again while time is left, as medians of ratios; `episode` sums all
steps.  Ratios are of CPU time and of wall time.  The logits are compared on the way, and once more with bfloat16.
`together` is another matter: eight threads, each with an episode of its own, answered one at a time or in batches.
Partial results go to the standard error stream as they come.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from harness.models.weights import Loaded, load
from methods.judges.engine import GPU_BATCH, Engine
from methods.judges.prompt import FOCUSED, Encoder, Prompt

THINGS = ("mug", "apple", "plate", "knife", "book", "towel", "candle", "laptop", "pen", "bowl")
PLACES = ("cabinet", "drawer", "shelf", "fridge", "countertop", "sinkbasin", "dresser", "desk")
K = 4
STEPS = 8
STATE = 4  # the step whose state has some 450 tokens
Times = dict[str, tuple[float, float]]  # CPU and wall seconds of each way


def views(episode: int, steps: int = STEPS) -> list[str]:
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


def timed(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """(CPU seconds of this process, wall seconds, result)."""
    cpu, wall = time.process_time(), time.perf_counter()
    found = work()
    if getattr(found, "is_cuda", False):
        import torch

        torch.cuda.synchronize()
    return time.process_time() - cpu, time.perf_counter() - wall, found


class Bench:
    """A model with its engine, and the encoded questions."""

    def __init__(self, loaded: Loaded, prompt: Prompt | None = None) -> None:
        self.loaded = loaded
        self.encoder = Encoder(loaded.tokenizer, prompt or Prompt())
        self.engine, self.fresh = Engine(loaded), Engine(loaded, memory_mb=0)

    def question(self, view: str, step: int) -> tuple[list[int], list[list[int]]]:
        """Prefix and suffixes."""
        return self.encoder.prefix(view), [self.encoder.pair(view, a, b) for a, b in pairs(step)]

    def letters(self, hidden: Any) -> Any:
        """(suffixes, 3) fp32 logits."""
        import torch

        with torch.inference_mode():
            return self.loaded.model.get_output_embeddings()(hidden)[:, list(self.encoder.letters())].float().cpu()

    def step(self, step: int, ways: Sequence[str] = ("apart", "cold", "kept")) -> tuple[Times, dict[str, Any]]:
        """Times and logits of one step of the episode, each way in turn."""
        prefix, suffixes = self.question(views(1)[step], step)
        work = {
            "apart": lambda: self.letters(apart(self.loaded, prefix, suffixes)),
            "cold": lambda: self.letters(self.fresh.run(prefix, suffixes).hidden),
            "kept": lambda: self.letters(self.engine.run(prefix, suffixes).hidden),
        }
        found = {way: timed(work[way]) for way in ways}
        return {way: one[:2] for way, one in found.items()}, {way: one[2] for way, one in found.items()}

    def logits(self, episodes: int) -> Any:
        """(decisions, 3) logits of episodes with the cache kept, at every third step."""
        import torch

        found = []
        for number in range(episodes):
            for step, view in list(enumerate(views(number)))[::3]:
                found.append(self.letters(self.engine.run(*self.question(view, step)).hidden))
        return torch.cat(found)


def ratios(rounds: Sequence[Times], base: str = "apart") -> dict[str, list[float]]:
    """Median over rounds of the ratio to `base`, by CPU and by wall time."""
    return {
        name: [round(statistics.median(one[base][i] / one[name][i] for one in rounds), 2) for i in (0, 1)]
        for name in rounds[0]
        if name != base
    }


def total(rounds: Sequence[Times]) -> Times:
    """Sums of each way."""
    return {way: (sum(one[way][0] for one in rounds), sum(one[way][1] for one in rounds)) for way in rounds[0]}


def agreement(one: Any, other: Any) -> dict[str, Any]:
    """Largest logit difference, how many decisions differ, and how close they were: letters and margins of `other`.

    A model that was not trained for this has a favourite letter, which hides all differences; so decisions are counted
    once more with each letter's median logit (of `other`) taken away.
    """
    best, usual = other.topk(2, -1).values, other.median(0).values
    return {
        "max_logit_difference": float((one - other).abs().max()),
        "decisions": len(one),
        "decisions_differ": int((one.argmax(-1) != other.argmax(-1)).sum()),
        "differ_without_favourite": int(((one - usual).argmax(-1) != (other - usual).argmax(-1)).sum()),
        "letters_ABT": other.argmax(-1).bincount(minlength=3).tolist(),
        "median_margin": float((best[:, 0] - best[:, 1]).median()),
    }


def together(bench: Bench, room: int, episodes: int, steps: int) -> tuple[float, float, float, int]:
    """(CPU s, wall s, mean batch, calls) of as many threads as episodes that share an engine and start at once."""
    engine = Engine(bench.loaded, batch_tokens=room)
    gate = threading.Barrier(episodes + 1)

    def play(number: int) -> None:
        asked = [bench.question(view, step) for step, view in enumerate(views(number, steps))]
        gate.wait()
        for prefix, suffixes in asked:
            engine.run(prefix, suffixes)

    players = [threading.Thread(target=play, args=(number,)) for number in range(episodes)]
    for player in players:
        player.start()
    gate.wait()

    def wait() -> None:
        for player in players:
            player.join()

    cpu, wall, _ = timed(wait)
    return cpu, wall, episodes * steps / sum(engine.batcher.sizes.values()), episodes * steps


def compare_together(bench: Bench, episodes: int = 8, steps: int = 3, rounds: int = 1) -> dict[str, Any]:
    """Serial and batched in turn, medians of their ratios."""
    found = [(together(bench, 0, episodes, steps), together(bench, GPU_BATCH, episodes, steps)) for _ in range(rounds)]
    one, many = found[-1]
    return {
        "threads": episodes,
        "questions_a_second_serial_batched": [round(way[3] / way[1], 2) for way in (one, many)],
        "mean_batch": round(many[2], 2),
        "speedup_cpu_wall": [round(statistics.median(a[i] / b[i] for a, b in found), 2) for i in (0, 1)],
    }


def tiny() -> Bench:
    """An untrained judge of the size that is trained here from scratch, with its focused prompts."""
    from methods.training import tiny as recipe

    texts = [("task", text) for number in range(8) for text in views(number)]
    tokenizer = recipe.make_tokenizer([*texts, ("task", " ".join(a for s in range(8) for a, _ in pairs(s)))])
    model = recipe.make_model(tokenizer, "lm", 0).eval()
    return Bench(Loaded(model, tokenizer, "cpu", "float32", tokenizer.pad_token_id), FOCUSED)


def say(name: str, found: Any) -> Any:
    """Show a partial result at once."""
    print(f"{name}: {json.dumps(found)}", file=sys.stderr, flush=True)
    return found


def main() -> None:
    """Run and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--seconds", type=float, default=200, help="no new round is begun after these")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", choices=("prefill", "together"))
    given = parser.parse_args()
    import torch

    began = time.monotonic()
    torch.set_num_threads(given.threads)
    bench = Bench(load(given.model, dtype=given.dtype))
    report: dict[str, Any] = {"model": given.model, "dtype": given.dtype, "threads": given.threads}
    if given.only != "together":
        report |= prefill(bench, given, began)
    if given.only != "prefill":
        report["together_tiny"] = say("together, tiny", compare_together(tiny(), steps=8, rounds=5))
        report["together"] = say("together", compare_together(bench, steps=2))
    print(json.dumps(report, indent=1))


def prefill(bench: Bench, given: argparse.Namespace, began: float) -> dict[str, Any]:
    """The episode, then the one state again while time is left, then bfloat16."""
    import torch

    prefix, suffixes = bench.question(views(1)[STATE], STATE)
    report: dict[str, Any] = {"state_tokens": len(prefix), "suffix_tokens": [len(suffix) for suffix in suffixes]}
    bench.fresh.run(prefix[:32], suffixes[:1])  # warm up
    times, logits = [], []
    for number in range(given.steps):
        if number > STATE and time.monotonic() - began > given.seconds:
            break
        one, found = bench.step(number)
        times.append(one)
        logits.append(found)
        say(f"step {number}", {way: [round(value, 2) for value in pair] for way, pair in one.items()})
    report["episode_steps"] = len(times)
    report["episode_speedup_cpu_wall"] = say("episode", ratios([total(times)]))
    exact = {way: torch.cat([one[way] for one in logits]) for way in logits[0]}
    report["cold_against_apart"] = agreement(exact["cold"], exact["apart"])
    report["kept_against_apart"] = say("kept against apart", agreement(exact["kept"], exact["apart"]))
    half = Bench(load(given.model, dtype="bfloat16", device=bench.loaded.device))
    report["bf16_against_fp32"] = say("bf16", agreement(half.logits(5), bench.logits(5)))
    singles = times[STATE : STATE + 1]
    while not singles or (len(singles) < 5 and time.monotonic() - began < given.seconds):
        singles.append(bench.step(STATE, ("apart", "cold"))[0])
        say(f"round {len(singles)} of the one state", ratios(singles[-1:]))
    one_state = [{way: one[way] for way in ("apart", "cold")} for one in singles]
    report["one_state_speedup_cpu_wall"] = say("one state", ratios(one_state))
    report["one_state_rounds"] = len(singles)
    return report


if __name__ == "__main__":
    main()
