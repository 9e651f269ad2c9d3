"""How WebShop scales with the catalogue: time and memory of making and of searching a large one.

    python benchmarks/webshop_scale.py --products 100000

Writes official-shaped files of synthetic products (about 4.5 kB a record, as in the full catalogue, with a vocabulary
that keeps growing), then makes and opens the catalogue in fresh processes of their own, so that each figure is theirs
alone.  Everything lies in a temporary folder.  100,000 products take about three minutes on two cores.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FULL = 1_181_430  # products of the full official catalogue
QUERIES = 200


def _word(draw: random.Random, syllables: tuple[str, ...]) -> str:
    """A made-up word with a long tail: few common ones, ever new rare ones."""
    rank = int(draw.paretovariate(0.55))
    return "".join(syllables[(rank >> (5 * i)) % len(syllables)] for i in range(1 + min(4, rank.bit_length() // 5)))


def write(folder: Path, size: int) -> None:
    """Official-shaped files for `size` products."""
    from harness.environments.webshop import synthetic, words

    syllables = tuple(part.strip() for part in words.SYLLABLES.split(";"))
    draw = random.Random(0)
    with (
        (folder / "items_shuffle.json").open("w", encoding="utf-8") as products,
        (folder / "items_ins_v2.json").open("w", encoding="utf-8") as facts,
    ):
        products.write("[")
        facts.write("{")
        for number, (record, entry) in enumerate(synthetic.records(0, size)):
            more = " ".join(_word(draw, syllables) for _ in range(90))
            whole = {**record, "full_description": f"{record['full_description']} {more}", "images": ["x" * 90] * 12}
            whole["product_information"] = {"unused": "y" * 1200}
            comma = ", " if number else ""
            products.write(comma + json.dumps(whole, ensure_ascii=False))
            facts.write(f"{comma}{json.dumps(record['asin'])}: {json.dumps(entry)}")
        products.write("]")
        facts.write("}")


def peak_mb() -> float:
    """Highest resident memory of this process so far, mapped files included."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def make(folder: Path) -> None:
    """Stage 1: read the files and write products, search arrays and goals."""
    from harness.cache import cache_dir
    from harness.environments.webshop import build

    start = time.perf_counter()
    made = build.ensure(cache_dir("webshop"), build.find(str(folder), None))
    seconds = time.perf_counter() - start
    disk = sum(path.stat().st_size for path in made.iterdir()) / 2**20
    print(f"make: {seconds:.1f} s, peak memory {peak_mb():.0f} MB, {disk:.0f} MB on disk")


def use(folder: Path) -> None:
    """Stage 2: open, search, read products, play steps."""
    from harness.environments.webshop import WebShop

    start = time.perf_counter()
    shop = WebShop(catalogue=str(folder))
    tasks = shop.tasks("test")
    print(f"open: {time.perf_counter() - start:.2f} s, peak memory {peak_mb():.0f} MB")
    searches: list[float] = []
    steps: list[float] = []
    for task_id in tasks[:QUERIES]:
        shop.reset(task_id, 0)
        for action in (f"search[{shop.goal(task_id).instruction}]", "click[next >]", "click[< prev]"):
            start = time.perf_counter()
            shop.step(shop.canonical(action))
            (searches if action.startswith("search") else steps).append((time.perf_counter() - start) * 1000)
    for name, found in (("search", searches), ("other steps", steps)):
        print(f"{name}: mean {statistics.mean(found):.2f} ms, worst {max(found):.2f} ms over {len(found)}")
    print(f"after {QUERIES} searches: peak memory {peak_mb():.0f} MB")


def main() -> None:
    """Run all stages, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--products", type=int, default=100_000)
    parser.add_argument("--stage", choices=("write", "make", "use"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stage:
        stages = {"write": lambda: write(options.folder, options.products), "make": lambda: make(options.folder)}
        stages.get(options.stage, lambda: use(options.folder))()
        return
    with tempfile.TemporaryDirectory() as name:
        environment = {**os.environ, "COTA_BENCH_CACHE": f"{name}/cache", "PYTHONPATH": os.pathsep.join(sys.path)}
        for stage in ("write", "make", "use"):
            size = ["--products", str(options.products)]
            command = [sys.executable, __file__, *size, "--stage", stage, "--folder", name]
            subprocess.run(command, env=environment, check=True)
            if stage == "write":
                gigabytes = Path(name, "items_shuffle.json").stat().st_size / 2**30
                print(f"{options.products} products ({FULL} in the full catalogue), {gigabytes:.2f} GB", flush=True)


if __name__ == "__main__":
    main()
