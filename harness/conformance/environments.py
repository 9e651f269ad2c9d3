"""What every environment must do: determinism, exact snapshots, bounded and honest answers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from harness import intake
from harness.conformance.base import NotApplicable, require
from harness.errors import IllegalAction, UsageError
from harness.panels import task_ids
from harness.protocols import Environment
from harness.records import Action, DecisionState, Outcome, Turn
from harness.seeds import stream

HOSTILE = ("", " ", "\x00\x1b[31m", "[[bold]]", "a" * 20_000, "click[", "f({", "../../etc/passwd", "é" * 50, "\n\n")


@dataclass
class EnvironmentSubject:
    """An environment and a split and task to try it on."""

    environment: Environment
    split: str
    task_id: str

    def start(self) -> DecisionState:
        """Reset to the task under test."""
        task, opening = intake.opening(self.environment.reset(self.task_id, 0))
        return DecisionState(self.environment.name, self.task_id, task, opening)

    def walk(self, state: DecisionState, steps: int, seed: int = 0) -> tuple[DecisionState, list[Outcome]]:
        """A seeded random walk over the pool."""
        outcomes: list[Outcome] = []
        for index in range(steps):
            options = sorted(self.environment.pool(state), key=lambda action: action.canonical)
            if not options or (outcomes and outcomes[-1].done):
                break
            action = stream(role="conformance", seed=seed, step=index).choice(options)
            outcome = intake.outcome(self.environment.step(action))
            outcomes.append(outcome)
            state = replace(state, turns=(*state.turns, Turn(action, outcome.observation)))
        return state, outcomes


def facts(s: EnvironmentSubject) -> None:
    """It names itself, its version, its metric and its step limit."""
    env = s.environment
    require(bool(env.name and env.version), "name and version must be non-empty class attributes")
    require(env.metric in ("mean_reward", "success_rate"), f"metric is {env.metric!r}; mean_reward or success_rate")
    require(env.max_steps > 0, "max_steps must be positive")
    require(len(env.briefing()) > 20, "briefing() must tell an actor the rules and the action format")


def tasks_are_stable(s: EnvironmentSubject) -> None:
    """Tasks have unique text ids in a fixed order and a stable fingerprint."""
    first, second = list(s.environment.tasks(s.split)), list(s.environment.tasks(s.split))
    require(first == second, "tasks() gives another order the second time")
    task_ids(s.environment.name, s.environment, s.split)
    prints = {s.environment.fingerprint(s.task_id) for _ in range(2)}
    require(len(prints) == 1 and all(isinstance(p, str) and p for p in prints), "fingerprint() is no stable text")


def unknown_names_are_refused(s: EnvironmentSubject) -> None:
    """An unknown split and an unknown task raise UsageError."""
    for what, call in (
        ("split", lambda: s.environment.tasks("no-such-split")),
        ("task", lambda: s.environment.reset("../no-such-task", 0)),
    ):
        try:
            call()
        except UsageError as error:
            require(len(str(error)) > 20, f"the message about an unknown {what} does not help: {error}")
        else:
            require(False, f"an unknown {what} is not refused")


def reset_is_deterministic(s: EnvironmentSubject) -> None:
    """The same task and seed start in the same way."""
    require(s.start() == s.start(), "two resets with one seed differ")


def replay_is_deterministic(s: EnvironmentSubject) -> None:
    """The same actions give the same observations, rewards and end."""
    first = s.walk(s.start(), 6)[1]
    second = s.walk(s.start(), 6)[1]
    strip = [[replace(o, simulator_s=0.0) for o in outcomes] for outcomes in (first, second)]
    require(strip[0] == strip[1], "two runs of the same actions differ")


def snapshots_are_exact(s: EnvironmentSubject) -> None:
    """A snapshot can be restored more than once and continues exactly."""
    state, _ = s.walk(s.start(), 3, seed=1)
    held = s.environment.snapshot()
    runs = []
    for _ in range(3):
        after, outcomes = s.walk(state, 4, seed=2)
        runs.append((after, [replace(o, simulator_s=0.0) for o in outcomes]))
        s.environment.restore(held)
    require(runs[0] == runs[1] == runs[2], "what follows a restore differs from what followed the snapshot")


def pool_is_legal(s: EnvironmentSubject) -> None:
    """Every pooled action is legal, distinct, and parses to itself."""
    state, _ = s.walk(s.start(), 2, seed=3)
    pool = list(s.environment.pool(state))
    require(len({a.canonical for a in pool}) == len(pool), "pool() repeats actions")
    for action in pool[:60]:
        require(s.environment.legal(action), f"pool() holds the illegal action {action.text!r}")
        again = s.environment.canonical(action.text)
        require(again.canonical == action.canonical, f"{action.text!r} parses to {again.canonical!r}")


def hostile_text_is_harmless(s: EnvironmentSubject) -> None:
    """Hostile text is refused by IllegalAction or executed harmlessly."""
    s.start()
    for text in HOSTILE:
        try:
            action = s.environment.canonical(text)
        except IllegalAction as error:
            require(len(str(error)) < 2_000, "the message about an illegal action repeats an unbounded text")
            continue
        outcome = intake.outcome(s.environment.step(action))
        require(len(outcome.observation.text) < 100_000, f"the answer to {text[:20]!r} is unbounded")


def an_illegal_action_does_not_raise(s: EnvironmentSubject) -> None:
    """An illegal action is answered as the environment answers it."""
    state = s.start()
    for text in ("fly to the moon 9", "click[no such thing]", "no_such_tool({})"):
        try:
            action = s.environment.canonical(text)
        except IllegalAction:
            action = Action(text, text)
        require(not s.environment.legal(action), f"{text!r} counts as legal")
        intake.outcome(s.environment.step(action))
    require(bool(state.task), "the task text is empty")


def rewards_are_scores(s: EnvironmentSubject) -> None:
    """Outcomes can be stored; rewards lie in [0, 1] or are None, never NaN."""
    for outcome in s.walk(s.start(), 8, seed=4)[1]:
        if outcome.reward is not None:
            require(math.isfinite(outcome.reward), "a reward is not finite")
            require(0.0 <= outcome.reward <= 1.0, f"a reward is {outcome.reward}")
        require("unscored" in outcome.info or outcome.reward is not None, "a None reward needs info['unscored']")


def render_is_the_advisors_view(s: EnvironmentSubject) -> None:
    """The advisor's view is deterministic, bounded and holds the present observation's gist."""
    state, _ = s.walk(s.start(), 4, seed=5)
    first = s.environment.render(state)
    require(first == s.environment.render(state), "render() is not deterministic")
    require(0 < len(first) < 40_000, f"render() gives {len(first)} characters")


def oracle_is_usable(s: EnvironmentSubject) -> None:
    """The oracle names legal actions, values in [0, 1], and changes nothing."""
    s.start()
    oracle = s.environment.oracle()
    if oracle is None:
        raise NotApplicable("it has no oracle, so simulated actors cannot act in it")
    for _ in range(4):
        held = s.environment.snapshot()
        expert, mistakes = oracle.expert(), list(oracle.mistakes())
        require(s.environment.legal(expert), f"the expert's {expert.text!r} is illegal")
        require(len({a.canonical for a in mistakes}) == len(mistakes), "mistakes() repeats actions")
        for action in (expert, *mistakes):
            value = oracle.value(action)
            require(0.0 <= value <= 1.0, f"value({action.text!r}) is {value}")
            require(oracle.value(action) == value, "value() changes when asked again")
            require(bool(oracle.reason(action)), "reason() is empty")
        require(oracle.expert() == expert, "asking the oracle changes the state")
        s.environment.restore(held)
        outcome = intake.outcome(s.environment.step(expert))
        if outcome.done:
            break
        oracle = s.environment.oracle() or oracle


def closes_twice(s: EnvironmentSubject) -> None:
    """close() may be called twice, and the environment can be used again."""
    s.environment.close()
    s.environment.close()
    s.start()


CHECKS = (
    facts,
    tasks_are_stable,
    unknown_names_are_refused,
    reset_is_deterministic,
    replay_is_deterministic,
    snapshots_are_exact,
    pool_is_legal,
    hostile_text_is_harmless,
    an_illegal_action_does_not_raise,
    rewards_are_scores,
    render_is_the_advisors_view,
    oracle_is_usable,
    closes_twice,
)
