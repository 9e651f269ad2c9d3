"""The scripted customer: seeded, deterministic, no language model.  It proves plumbing, not realism.

It opens with its first wish, tells who it is piece by piece when asked, says yes to a proposal that fits one of its
goals and no (with what it meant) to one that does not, believes the agent that a thing it agreed to is done, asks its
questions at the end, and stops.  An unhelpful agent uses its patience up.  The seed decides phrasing, patience, whether
it tells identity in one go, and whether it names all wishes at once or one after another.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple, cast

from harness.environments.retail import reading
from harness.environments.retail.data import RetailData, Task
from harness.environments.retail.persona import Goal, Persona, goals, persona
from harness.environments.retail.user import TRANSFER_PHRASE, Reply
from harness.seeds import stream

_HELLO = ("Hi, I would like to {}.", "Hello! I need some help: I want to {}.", "Hey, could you help me {}?")
_ALSO = ("I would also like to {}.", "One more thing: I want to {}.", "Next, please help me {}.")
_YES = ("Yes, please go ahead.", "Yes, that is right, please proceed.", "Yes.")
_NO = ("No, that is not what I want.", "No, please don't.", "No, that isn't right.")
_WHAT = ("Sorry, I don't follow.", "That doesn't quite help me.", "Hm, let me say it again.")
_THANKS = ("Thank you, that is all.", "Great, thanks for your help. Bye!", "That's everything, thank you.")
_GIVE_UP = ("This isn't working for me. Never mind.", "I'll leave it for now. Bye.", "Forget it, thanks anyway.")


class State(NamedTuple):
    """All that changes in a conversation; sets are sorted tuples so that states compare equal."""

    revealed: int = 1  # goals named so far, in order
    agreed: tuple[int, ...] = ()
    closed: tuple[int, ...] = ()  # goals the customer takes for settled
    told: tuple[str, ...] = ()  # identity pieces told
    heard: tuple[int, ...] = ()  # indexes of required information heard
    idle: int = 0  # messages that led nowhere
    turn: int = 0
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Casting:
    """What stays the same during a conversation: who, what for, and the manners that the seed drew."""

    task: Task
    seed: int
    persona: Persona
    goals: tuple[Goal, ...]
    one_by_one: bool  # names one wish at a time
    private: bool  # tells one new identity piece at a time
    patience: int  # messages without progress that it takes


class ScriptedUser:
    """A customer played by rules; role and state are the whole conversation."""

    simulated = "user"

    def __init__(self, data: RetailData) -> None:
        self.data = data
        self.state = State()
        self.role: Casting

    @property
    def persona(self) -> Persona:
        """Who the customer is."""
        return self.role.persona

    @property
    def goals(self) -> tuple[Goal, ...]:
        """What the customer wants, in order."""
        return self.role.goals

    def opening(self, task: Task, seed: int) -> Reply:
        start = time.perf_counter()
        draw = stream(part="scripted user", task=task.id, seed=seed)
        self.role = Casting(
            task,
            seed,
            persona(self.data, task),
            goals(self.data, task),
            one_by_one=draw.random() < 0.6,
            private=draw.random() < 0.5,
            patience=draw.randint(5, 9),
        )
        named = 1 if self.role.one_by_one else len(self.goals)
        self.state = State(revealed=named)
        text = self._pick(_HELLO).format(self.goals[0].want)
        for goal in self.goals[1:named]:
            text += f" I would also like to {goal.want}."
        return Reply(text, seconds=time.perf_counter() - start)

    def reply(self, message: str) -> Reply:
        start = time.perf_counter()
        text, self.state, ended = self.respond(self.state, message)
        seconds = time.perf_counter() - start
        if not ended:
            return Reply(text, seconds=seconds)
        return Reply(text, "transfer" if TRANSFER_PHRASE in message.upper() else "stop", seconds=seconds)

    def snapshot(self) -> tuple[Casting, State]:
        return self.role, self.state

    def restore(self, snapshot: object) -> None:
        self.role, self.state = cast(tuple[Casting, State], snapshot)

    def respond(self, state: State, message: str) -> tuple[str, State, bool]:
        """(text, next state, whether the customer ends): a pure function, which the oracle also asks."""
        state = state._replace(turn=state.turn + 1, heard=self._hear(state, message))
        if TRANSFER_PHRASE in message.upper():
            return "Okay, I'll hold.", state._replace(ended=True), True
        text, after = self._answer(state, message)
        if text:
            return text, after, False
        if after.idle > self.role.patience:
            return self._pick(_GIVE_UP, after), after._replace(ended=True), True
        if len(after.closed) == len(self.goals):
            return self._pick(_THANKS, after), after._replace(ended=True), True
        return self._restate(after), after, False

    def _hear(self, state: State, message: str) -> tuple[int, ...]:
        fresh = {i for i, info in enumerate(self.role.task.communicate) if reading.tells(message, info)}
        return tuple(sorted(fresh.union(state.heard)))

    def _answer(self, state: State, message: str) -> tuple[str, State]:
        """A direct answer, or "" when the customer goes on to its next wish, repeats itself, gives up or leaves."""
        wanted = reading.asks_identity(message)
        if reading.proposes(message) and (not wanted or self._fitting(state, message)):
            return self._judge(state, message)
        if wanted and not reading.claims_done(message):
            return self._identify(state, wanted)
        if reading.offers_more(message) or reading.claims_done(message):
            return self._go_on(state, message)
        answer = self._facts(state, reading.asks(message))
        if answer:
            return answer, state._replace(idle=state.idle + 1)
        return "", self._settle(state._replace(idle=state.idle + 1), message)

    def _fitting(self, state: State, message: str) -> set[int]:
        wishes = (i for i in range(state.revealed) if i not in state.closed)
        return {i for i in wishes if reading.fits(self.goals[i], message)}

    def _judge(self, state: State, message: str) -> tuple[str, State]:
        fitting = self._fitting(state, message)
        if fitting:
            return self._pick(_YES, state), state._replace(agreed=tuple(sorted(fitting.union(state.agreed))))
        state = state._replace(idle=state.idle + 1)
        if state.idle > self.role.patience:
            return "", state
        return f"{self._pick(_NO, state)} {self._current(state)}", state

    def _identify(self, state: State, wanted: tuple[str, ...]) -> tuple[str, State]:
        """Tell what was asked for; a private customer tells one new piece at a time."""
        who, pieces = self.persona, {}
        if "email" in wanted:
            pieces["email"] = f"My email is {' or maybe '.join(who.emails)}." if who.emails else ""
        if "name" in wanted:
            pieces["name"] = f"My name is {who.first} {who.last}."
        if "zip" in wanted:
            pieces["zip"] = f"My zip code is {who.zip}."
        parts = ["I don't remember my email."] if pieces.get("email") == "" else []
        told = [key for key, text in pieces.items() if text and key not in state.told]
        again = not told
        if again:
            told = [key for key, text in pieces.items() if text]
        elif self.role.private:
            told = told[:1]
        parts += [pieces[key] for key in told]
        idle = state.idle + again
        new = tuple(sorted({*state.told, *told, *(["no email"] if pieces.get("email") == "" else [])}))
        if idle > self.role.patience:
            return "", state._replace(idle=idle)
        return " ".join(parts), state._replace(told=new, idle=idle)

    def _go_on(self, state: State, message: str) -> tuple[str, State]:
        """The agent says that it is done or asks for more: settle what was agreed, name the next wish."""
        before = state.closed
        state = self._settle(state._replace(closed=tuple(sorted({*state.closed, *state.agreed}))), message)
        while state.revealed < len(self.goals):
            index, goal = state.revealed, self.goals[state.revealed]
            state = state._replace(revealed=index + 1)
            if goal.kind != "info" or len(state.heard) < len(self.role.task.communicate):
                return self._pick(_ALSO, state).format(goal.want), state
            state = state._replace(closed=(*state.closed, index))
        idle = state.idle if state.closed != before else state.idle + 1
        return "", state._replace(idle=idle)

    def _settle(self, state: State, message: str) -> State:
        """Close questions that were answered (or given up on when asked for more) and wishes that were refused."""
        closed = set(state.closed)
        for index, goal in enumerate(self.goals[: state.revealed]):
            over = reading.offers_more(message) or reading.refuses(message)
            answered = len(state.heard) == len(self.role.task.communicate)
            if goal.kind == "info" and (answered or (over and state.idle > self.role.patience // 2)):
                closed.add(index)
            if goal.kind == "vague" and over and state.told:
                closed.add(index)
            if goal.kind == "transfer" and reading.refuses(message) and state.idle > self.role.patience // 2:
                closed.add(index)
        return state._replace(closed=tuple(sorted(closed)))

    def _facts(self, state: State, asked: tuple[str, ...]) -> str:
        goal = self._goal(state)
        if goal is None or not asked or state.idle >= self.role.patience:
            return ""
        parts = [goal.fact(key) for key in ("reason", "payment", "address") if key in asked]
        if "order" in asked:
            parts.append(goal.fact("order") if self.persona.knows_orders else "I don't remember the order number.")
            parts.append(goal.detail)
        if "detail" in asked:
            parts.append(self._current(state))
        return " ".join(dict.fromkeys(part for part in parts if part))

    def _goal(self, state: State) -> Goal | None:
        open_goals = [i for i in range(state.revealed) if i not in state.closed and i not in state.agreed]
        return self.goals[open_goals[0]] if open_goals else None

    def _current(self, state: State) -> str:
        goal = self._goal(state)
        if goal is None:
            return "Please do what we agreed on."
        told = [f"I would like to {goal.want}.", goal.detail, goal.fact("address"), goal.fact("payment")]
        return " ".join(part for part in told if part)

    def _restate(self, state: State) -> str:
        return f"{self._pick(_WHAT, state)} {self._current(state)}"

    def _pick(self, options: tuple[str, ...], state: State | None = None) -> str:
        turn = state.turn if state else 0
        return options[(self.role.seed * 7 + turn * 5 + len(options[0])) % len(options)]
