"""Simulated actors: an oracle's judgement blurred by seeded noise.  They are no LLMs, and every record says so.

An actor of this kind *values* an action as the environment's oracle does, plus noise of which one part is the same
for the whole episode (a misconception: the same wrong item keeps looking right) and one part is new at each decision
(a slip).  It proposes what looks best among the actions that come to its mind: the expert one (not always) and
plausible mistakes.  Advice is weighed by the very same noisy judgement, with some credit for being recommended and
some attachment to what it was about to do, so it adopts, keeps or finds something else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from harness.errors import EpisodeError, UsageError, nearest
from harness.protocols import Mind, Oracle
from harness.records import Action, Advice, DecisionState, Proposal, Usage
from harness.seeds import stream


@dataclass(frozen=True, slots=True)
class Competence:
    """How good a simulated actor is; all in units of the oracle's value (0..1) or probabilities."""

    noise: float  # standard deviation of its judgement
    persistence: float  # share of the noise's variance that stays for the episode
    insight: float  # probability that the expert action comes to mind
    ideas: int  # how many mistakes come to mind
    trust: float  # credit for a recommended action
    attachment: float  # credit for its own proposal when it answers again
    boredom: float  # discount for each time the action was already executed


LEVELS = {
    "weak": Competence(0.42, 0.5, 0.75, 4, 0.15, 0.10, 0.10),
    "medium": Competence(0.30, 0.5, 0.88, 3, 0.15, 0.12, 0.12),
    "strong": Competence(0.18, 0.4, 0.96, 2, 0.10, 0.12, 0.15),
}


class SimulatedActor:
    """Simulated actor (no LLM) of stated competence: weak, medium or strong.

    Args:
        competence: one of the levels in `LEVELS`.
        noise: overrides the level's judgement noise (standard deviation in units of value).
    """

    simulated = True
    estimate: ClassVar[Mapping[str, float]] = {"calls": 1, "seconds": 0.002}

    def __init__(self, competence: str = "medium", noise: float | None = None) -> None:
        self.competence = competence
        self.noise = noise

    def propose(self, state: DecisionState, mind: Mind) -> Proposal:
        """What looks best among what comes to mind."""
        oracle = self._oracle(mind)
        level = self._level()
        ideas = self._ideas(oracle, mind, level)
        return self._best(((action, 0.0) for action in ideas), state, mind, oracle)

    def replan(self, state: DecisionState, proposal: Proposal, advice: Advice, mind: Mind) -> Proposal:
        """Weigh own proposal, recommendations and second thoughts by the same noisy judgement."""
        oracle = self._oracle(mind)
        level = self._level()
        options: dict[str, tuple[Action, float]] = {}
        for action in self._ideas(oracle, mind, level):
            options[action.canonical] = (action, -0.05)
        for rank, action in enumerate(advice.recommended):
            options[action.canonical] = (action, level.trust / (1 + rank))
        # A self-check asks to keep by default, so there the attachment is twice as strong.
        credit = level.attachment * (2.0 if advice.kind == "self_check" else 1.0)
        own = options.get(proposal.action.canonical, (proposal.action, 0.0))
        options[proposal.action.canonical] = (proposal.action, max(own[1], 0.0) + credit)
        return self._best(options.values(), state, mind, oracle)

    def _level(self) -> Competence:
        if self.competence not in LEVELS:
            raise UsageError(f"Unknown competence {self.competence!r}.{nearest(self.competence, LEVELS)}")
        return LEVELS[self.competence]

    @staticmethod
    def _oracle(mind: Mind) -> Oracle:
        if mind.oracle is None:
            raise EpisodeError("actor", "a simulated actor needs an environment with an oracle, and this one has none")
        return mind.oracle

    @staticmethod
    def _ideas(oracle: Oracle, mind: Mind, level: Competence) -> list[Action]:
        chance = stream(role="ideas", seed=mind.seed)
        mistakes = {action.canonical: action for action in oracle.mistakes()}
        order = sorted(mistakes)
        chance.shuffle(order)
        ideas = [mistakes[name] for name in order[: level.ideas]]
        if not ideas or chance.random() < level.insight:
            ideas.insert(0, oracle.expert())
        return ideas

    def _best(
        self, options: Iterable[tuple[Action, float]], state: DecisionState, mind: Mind, oracle: Oracle
    ) -> Proposal:
        level = self._level()
        noise = level.noise if self.noise is None else self.noise
        done = [turn.action.canonical for turn in state.turns]

        def looks(option: tuple[Action, float]) -> tuple[float, str]:
            action, credit = option
            name = action.canonical
            lasting = stream(role="misconception", seed=mind.episode_seed, action=name).gauss(0.0, 1.0)
            passing = stream(role="slip", seed=mind.seed, action=name).gauss(0.0, 1.0)
            blur = level.persistence**0.5 * lasting + (1.0 - level.persistence) ** 0.5 * passing
            return oracle.value(action) + noise * blur + credit - level.boredom * done.count(name), name

        best = max(options, key=looks)[0]
        return Proposal(best, oracle.reason(best), Usage(calls=1))
