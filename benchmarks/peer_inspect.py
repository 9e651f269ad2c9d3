"""inspect_ai on the work of `benchmarks.peers`; run by a Python that has inspect_ai, imports nothing of ours.

    python benchmarks/peer_inspect.py EPISODES TURNS

One sample an episode.  A solver asks the model `TURNS` times and answers each time with the observation of the mock
corridor.  Everything else is as inspect_ai does it by default, with its progress display off; the log goes to a
temporary folder, and the turns are counted in it afterwards, off the clock.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time


def main(episodes: int, turns: int) -> None:
    """Run, count, print JSON."""
    import inspect_ai
    from inspect_ai.dataset import Sample
    from inspect_ai.log import read_eval_log
    from inspect_ai.model import ChatMessageUser, ModelOutput, ModelUsage, get_model
    from inspect_ai.solver import solver

    @solver
    def corridor():
        async def solve(state, generate):
            for step in range(turns):
                state = await generate(state)
                state.messages.append(ChatMessageUser(content=f"You are at position {step + 1} of {turns}."))
            return state

        return solve

    def replies():
        """With usage given: else inspect_ai counts tokens itself, with a vocabulary that it must download."""
        while True:
            output = ModelOutput.from_content("mockllm/model", "right")
            output.usage = ModelUsage(input_tokens=10, output_tokens=1, total_tokens=11)
            yield output

    samples = [Sample(id=f"test-{number}", input="Walk to the end of the corridor.") for number in range(episodes)]
    task = inspect_ai.Task(dataset=samples, solver=corridor(), name="corridor")
    with tempfile.TemporaryDirectory() as folder:
        began, spent = time.perf_counter(), cpu_seconds()
        model = get_model("mockllm/model", custom_outputs=replies())
        logs = inspect_ai.eval(task, model=model, log_dir=folder, display="none")
        took, used = time.perf_counter() - began, cpu_seconds() - spent
        log = read_eval_log(logs[0].location)
    if log.status != "success":
        raise SystemExit(f"inspect_ai ended with {log.status}: {str(log.error)[:300]}")
    asked = sum(message.role == "assistant" for sample in log.samples or [] for message in sample.messages)
    print(json.dumps({"wall": took, "cpu": used, "turns": asked}))


def cpu_seconds() -> float:
    """Of this process and its children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in used)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
