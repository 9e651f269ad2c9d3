"""ALFWorld as an environment: household tasks in text, played in the real TextWorld engine.

One engine serves all games of an instance.  An episode is fixed by its game: nothing is drawn, so the seed of `reset`
changes nothing.  The reward is the engine's goal condition, 0 or 1; a won game stays won and takes no more commands.
A snapshot is plain text, holds the exact state and works on any instance that can load the same game.

All admissible commands are shown to the actor.  The pool of candidates leaves out `help` alone: its answer is the
same everywhere and says no more than the briefing; `look`, `inventory` and `examine` tell about the state and stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from harness.environments.alfworld.commands import normal, parse
from harness.environments.alfworld.games import EmbeddedGames, Game, Games, OfficialGames
from harness.environments.alfworld.oracle import AlfWorldOracle
from harness.environments.alfworld.package import check_engine
from harness.environments.alfworld.translation import GameError
from harness.environments.alfworld.world import (
    CHANGING,
    LASTING,
    Goal,
    Layout,
    Now,
    goal_of,
    layout_of,
    now_of,
)
from harness.errors import EpisodeError
from harness.records import Action, DecisionState, Observation, Outcome
from harness.seeds import digest

if TYPE_CHECKING:
    from harness.environments.alfworld.engine import Engine, Saved

BRIEFING = """You act in a simulated household through text commands and have to fulfil one task.
The first text lists the receptacles of the room (furniture and appliances). What lies on or in one is shown when you
go to it; cabinets, drawers, fridges, microwaves and safes have to be opened before you see or reach what is inside.
You can carry one object at a time. Objects and receptacles are named by kind and number, such as "mug 2".

Commands (O an object, R a receptacle):
go to R | open R | close R | take O from R | move O to R | examine O (or R) | use O (a lamp)
heat O with R (a microwave) | cool O with R (a fridge) | clean O with R (a sink basin) | slice O with O
look | inventory

Heating, cooling and cleaning need you at the appliance with the object in your hand; they work whether it is open or
not. To look at an object under a lamp, hold it where the lamp stands and use the lamp. A command that is not possible
now is answered "Nothing happens." Answer with exactly one command a turn."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An episode's state in plain text."""

    task_id: str
    saved: Saved
    observation: Observation
    done: bool


class AlfWorld:
    """ALFWorld: household tasks in text (TextWorld engine), generated or official games."""

    name: ClassVar[str] = "alfworld"
    version: ClassVar[str] = "1"
    metric: ClassVar[str] = "success_rate"
    max_steps: ClassVar[int] = 30
    estimate: ClassVar[Mapping[str, float]] = {"steps": 22, "seconds": 0.1}
    simulated: tuple[str, ...] = ()

    def __init__(self, games: str = "embedded", seed: int = 0) -> None:
        """`games`: "embedded" (generated from `seed`), "official" ($ALFWORLD_DATA), or a folder of official games."""
        self.games = games
        self.seed = seed
        self._source: Games | None = None
        self._engine: Engine | None = None
        self._game: Game | None = None
        self._observation = Observation("")
        self._done = False
        self._oracle: AlfWorldOracle | None = None
        self._known: tuple[Layout, Goal] | None = None

    def tasks(self, split: str) -> Sequence[str]:
        """Ids of a split. Raises `UsageError` for an unknown split or missing data, with how to get it."""
        return self._games().tasks(split)

    def fingerprint(self, task_id: str) -> str:
        """Hash of version, domain, grammar (with the task) and problem; of the bytes where a file cannot be read."""
        return digest([self.version, self._games().content(task_id)])

    def briefing(self) -> str:
        """Rules and command forms."""
        return BRIEFING

    def reset(self, task_id: str, seed: int) -> tuple[str, Observation]:
        """Start a game. Raises `UsageError` (unknown id), `EpisodeError` (broken game file)."""
        self._game = None
        self._load(self._games().load(task_id))
        try:
            text = self._running().opening()
        except GameError as error:
            raise self._broken(error) from error
        room, _, task = text.partition("Your task is to:")
        self._observation = Observation(_body(room), self._running().commands())
        self._done = False
        return task.strip(), self._observation

    def step(self, action: Action) -> Outcome:
        """Execute one command; an impossible one is answered "Nothing happens."."""
        engine = self._running()
        if self._done:
            return Outcome(self._observation, 1.0, True, {"valid": False})
        command = normal(action.text)
        valid = command in self._observation.actions
        text = engine.step(command)
        self._done = engine.won()
        self._observation = Observation(text.strip(), engine.commands())
        return Outcome(self._observation, float(self._done), self._done, {"valid": valid})

    def snapshot(self) -> Snapshot:
        """The exact state (2 kB of text)."""
        return Snapshot(self._task_id(), self._running().save(), self._observation, self._done)

    def restore(self, snapshot: Snapshot) -> None:
        """Back to a snapshot, also of another game or another instance with the same games."""
        if self._game is None or self._game.task_id != snapshot.task_id:
            self._load(self._games().load(snapshot.task_id))
        self._running().put_back(snapshot.saved)
        self._observation, self._done = snapshot.observation, snapshot.done

    def canonical(self, text: str) -> Action:
        """One command in its one spelling. Raises `IllegalAction`."""
        return parse(text)

    def legal(self, action: Action) -> bool:
        """Whether the command is admissible now."""
        return not self._done and action.canonical in self._observation.actions

    def pool(self, state: DecisionState) -> Sequence[Action]:
        """The admissible commands without `help`."""
        return [Action(text, text) for text in state.observation.actions if text != "help"]

    def render(self, state: DecisionState) -> str:
        """Task, actions and observations so far, and last the admissible commands."""
        lines = [f"Task: {state.task}", f"Observation: {state.opening.text}"]
        for turn in state.turns:
            lines += [f"Action: {turn.action.text}", f"Observation: {turn.observation.text}"]
        lines.append("Admissible commands: " + "; ".join(state.observation.actions))
        return "\n".join(lines)

    def oracle(self) -> AlfWorldOracle | None:
        """Latent knowledge of the running game; None for goals beyond the six task types."""
        if self._known is None and self._game is not None:
            goal = goal_of(self._running().game.goal)
            if goal is not None:
                self._known = layout_of(self._running().facts(LASTING), self._running().names), goal
        if self._oracle is None and self._known is not None:
            self._oracle = AlfWorldOracle(*self._known, self._view)
        return self._oracle

    def close(self) -> None:
        """Free the engine; safe to call twice, and `reset` makes a new one."""
        if self._engine is not None:
            self._engine.close()
        self._engine = self._game = self._oracle = self._known = None

    def __getstate__(self) -> dict[str, object]:
        """What goes to another process: the parameters alone."""
        return {"games": self.games, "seed": self.seed}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def _games(self) -> Games:
        if self._source is None:
            self._source = EmbeddedGames(self.seed) if self.games == "embedded" else OfficialGames(self.games)
        return self._source

    def _running(self) -> Engine:
        if self._engine is None or self._game is None:
            raise RuntimeError("alfworld: reset comes first")
        return self._engine

    def _task_id(self) -> str:
        return "" if self._game is None else self._game.task_id

    def _load(self, game: Game) -> None:
        if self._engine is None:
            check_engine()
            from harness.environments.alfworld.engine import Engine

            self._engine = Engine()
        self._oracle = self._known = None
        try:
            self._engine.load(game.key, game.domain, game.grammar, game.problem)
        except GameError as error:
            self._game = game
            raise self._broken(error) from error
        self._game = game

    def _broken(self, error: GameError) -> EpisodeError:
        source = "" if self._game is None else self._game.source
        self._game = None
        return EpisodeError(
            "environment", f"the game {source} cannot be played: {error}; get the file again with `alfworld-download`"
        )

    def _view(self) -> tuple[Now, Sequence[str]]:
        engine = self._running()
        return now_of(engine.facts(CHANGING), engine.names), () if self._done else self._observation.actions


def _body(opening: str) -> str:
    """The room without TextWorld's banner."""
    lines = [line for line in opening.strip().splitlines() if not line.startswith("-=")]
    return "\n".join(lines).strip()
