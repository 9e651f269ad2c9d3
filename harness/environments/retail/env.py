"""tau3-Retail as an environment: our loop over the official tools, database, policy and tasks.

One step is one action of the agent: exactly one tool call, answered by the tool, or one message to the customer,
answered by the customer.  The step limit counts these actions (default 100).  Upstream's limit counts *messages*, where
a tool call and its answer are two; 100 actions here are 200 messages there.  Ten failed tool calls in all end an
episode, as upstream.  Only an ending by the customer (stop, transfer, out of scope) or by the agent (the token
###STOP### in a message) can score; an episode cut off by a limit scores 0.  Tasks whose score rests on assertions in
natural language score None unless a judge is configured (`needs_judge` in their info, `unscored` says why).

A snapshot is three references: the frozen conversation, the frozen database overlay and the customer's state.  So a
restore makes no model call, and scoring goes by the original task, not by what was replayed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

from harness.environments.retail import data as retail_data
from harness.environments.retail import scoring
from harness.environments.retail.actions import FORMAT, RESPOND, Call, make, parse, parse_action
from harness.environments.retail.database import Database, Frozen
from harness.environments.retail.user import AGENT_STOP, Reply, UserSimulator
from harness.errors import IllegalAction, UsageError, nearest
from harness.records import Action, DecisionState, Observation, Outcome, Usage
from harness.seeds import digest

MAX_ERRORS = 10
GREETING = "Hi! How can I help you today?"
TASK = (
    "You are the customer service agent of an online shop. A customer is in a chat with you. Help with what the "
    "customer asks for, following the policy, until the customer ends the chat."
)


@dataclass(frozen=True, slots=True)
class Live:
    """The conversation so far, without database and customer. `calls` are (canonical text, failed), in order."""

    task: retail_data.Task
    observation: Observation
    messages: tuple[scoring.Message, ...]
    calls: tuple[tuple[str, bool], ...] = ()
    steps: int = 0
    errors: int = 0
    found: str = ""  # user id that a find tool returned
    ended: str = ""
    reward: float | None = 0.0
    info: scoring.Info = field(default_factory=dict)


class Snapshot(NamedTuple):
    """Everything an episode is; each part is immutable."""

    live: Live
    database: Frozen
    user: object


class Retail:
    """tau3-Retail: customer service with database tools, a policy and a simulated customer (official engine and data).

    Args:
        tasks: "tau3" (database and assertions) or "tau2" (database and communicated information).
        data: folder of an upstream checkout to read instead of the installed packages.
        user: "scripted" (seeded, no model), a mapping for an LLM user (`model`, `base_url`, ... of `Endpoint`), or a
            `UserSimulator`.
        judge: None, a mapping for an LLM judge, or a `Judge`.
    """

    name: ClassVar[str] = "retail"
    version: ClassVar[str] = "1"
    metric: ClassVar[str] = "success_rate"
    max_steps: ClassVar[int] = 100
    estimate: ClassVar[Mapping[str, float]] = {"steps": 24, "seconds": 0.02}

    def __init__(
        self,
        tasks: str = "tau3",
        data: str | None = None,
        user: str | Mapping[str, Any] | UserSimulator = "scripted",
        judge: Mapping[str, Any] | scoring.Judge | None = None,
    ) -> None:
        self.variant = tasks
        self.folder = data
        self.user = user
        self.judge = judge
        self.simulated: tuple[str, ...] = (
            ("user",) if user == "scripted" else (str(getattr(user, "simulated", "LLM user")),)
        )
        self._parts: _Parts | None = None
        self._live: Live | None = None

    @property
    def parts(self) -> _Parts:
        """Data, database, tools, customer and judge (made on first use)."""
        if self._parts is None:
            self._parts = _Parts.make(self.variant, self.folder, self.user, self.judge)
        return self._parts

    @property
    def live(self) -> Live:
        """The running episode. Raises `UsageError` before the first reset."""
        if self._live is None:
            raise UsageError("retail: no episode is running; call reset(task_id, seed) first.")
        return self._live

    def tasks(self, split: str) -> Sequence[str]:
        """Ids of "train" (60), "validation" (14 of the official training tasks, disjoint from "train"), "test" (40)."""
        splits = self.parts.data.splits
        if split not in splits:
            raise UsageError(f"retail has no split {split!r}.{nearest(split, splits)}")
        return splits[split]

    def needs_judge(self, task_id: str) -> bool:
        """Whether the task's score depends on assertions in natural language."""
        return self._task(task_id).needs_judge

    def fingerprint(self, task_id: str) -> str:
        data = self.parts.data
        return digest([self.version, data.variant, data.sha256, self._task(task_id).sha256])

    def _task(self, task_id: str) -> retail_data.Task:
        tasks = self.parts.data.tasks
        if task_id not in tasks:
            raise UsageError(f"retail has no task {task_id!r}.{nearest(task_id, tasks)}"[:400])
        return tasks[task_id]

    def briefing(self) -> str:
        tools = "\n".join(self.parts.schemas)
        return (
            f"{self.parts.data.policy.strip()}\n\n# Actions\n\n{FORMAT}\nOne action is one tool call, answered by the "
            f"tool, or one message to the customer, answered by the customer; never both. At most {self.max_steps} "
            f"actions; {MAX_ERRORS} failed tool calls end the chat.\n\n{tools}"
        )

    def reset(self, task_id: str, seed: int) -> tuple[str, Observation]:
        task, parts = self._task(task_id), self.parts
        parts.database.thaw(({}, {}))
        reply = parts.user.opening(task, seed)
        observation = Observation(f"Customer: {reply.text}", schemas=parts.schemas)
        info = scoring.JUDGED if task.needs_judge and parts.judge is None else scoring.NOTHING
        messages = (("assistant", GREETING), ("user", reply.text))
        self._live = Live(task, observation, messages, reward=scoring.running(task, parts.judge), info=info)
        return TASK, observation

    def step(self, action: Action) -> Outcome:
        live = self.live
        if live.ended:
            return Outcome(live.observation, live.reward, True, live.info)
        try:
            call = parse(action.text)
        except IllegalAction as error:
            return self._tool(make("illegal", {}), f"Error: {error}", True)
        if call.name != RESPOND:
            text, failed = self.parts.box.call(call.name, call.args)
            if not failed and call.name.startswith("find_user_id_by_"):
                self._live = replace(live, found=text)
            return self._tool(action, text, failed)
        content = call.args.get("content")
        if not isinstance(content, str) or not content.strip() or len(call.args) != 1:
            return self._tool(action, 'Error: respond takes one non-empty text: {"content": "..."}', True)
        return self._respond(content)

    def _tool(self, action: Action, text: str, failed: bool) -> Outcome:
        live = self.live
        errors = live.errors + failed
        live = replace(
            live,
            observation=Observation(text, schemas=self.parts.schemas),
            messages=(*live.messages, ("call", action.text), ("tool", text)),
            calls=(*live.calls, (action.canonical, failed)),
            steps=live.steps + 1,
            errors=errors,
        )
        if errors >= MAX_ERRORS:
            live = replace(live, ended="too_many_errors", info={**live.info, "ended": "too_many_errors"})
        self._live = live
        return Outcome(live.observation, live.reward, bool(live.ended), live.info)

    def _respond(self, content: str) -> Outcome:
        live = self.live
        stop = AGENT_STOP in content
        said = content.replace(AGENT_STOP, "").strip()
        self._live = live = replace(
            live, messages=(*live.messages, ("assistant", said or content)), steps=live.steps + 1
        )
        if stop:
            return self._finish("agent_stop", Observation("The chat is closed."), Reply(""))
        reply = self.parts.user.reply(content)
        self._live = live = replace(live, messages=(*live.messages, ("user", reply.text)))
        observation = Observation(f"Customer: {reply.text}", schemas=self.parts.schemas)
        if reply.ended:
            closed = Observation(f"{observation.text}\nThe customer has left the chat.", schemas=observation.schemas)
            return self._finish(f"user_{reply.ended}", closed, reply)
        self._live = replace(live, observation=observation)
        return Outcome(observation, live.reward, False, live.info, reply.usage, reply.seconds)

    def _finish(self, ended: str, observation: Observation, reply: Reply) -> Outcome:
        parts, live = self.parts, self.live
        golden = parts.data.golden(live.task.id)
        result = scoring.score(live.task, golden, parts.database, live.messages, parts.judge)
        info = {**result.info, "ended": ended, "needs_judge": live.task.needs_judge}
        self._live = replace(live, observation=observation, ended=ended, reward=result.reward, info=info)
        usage: Usage = reply.usage + result.usage
        return Outcome(observation, result.reward, True, info, usage, reply.seconds + result.seconds)

    def snapshot(self) -> Snapshot:
        return Snapshot(self.live, self.parts.database.freeze(), self.parts.user.snapshot())

    def restore(self, snapshot: Snapshot) -> None:
        self._live = snapshot.live
        self.parts.database.thaw(snapshot.database)
        self.parts.user.restore(snapshot.user)

    def canonical(self, text: str) -> Action:
        return parse_action(text)

    def legal(self, action: Action) -> bool:
        """Whether the tool exists and has exactly its parameters, each of its type, or a message has a text."""
        try:
            return well_formed(parse(action.text), self.parts.parameters)
        except IllegalAction:
            return False

    def pool(self, state: DecisionState) -> Sequence[Action]:
        from harness.environments.retail.pool import pool

        return pool(state, self.parts.data.item_tool)

    def render(self, state: DecisionState) -> str:
        from harness.environments.retail.view import render

        return render(state, self.parts.parameters)

    def oracle(self) -> Any:
        """Latent knowledge of the episode; None with an LLM user, whose answers cannot be foreseen."""
        from harness.environments.retail.oracle import RetailOracle
        from harness.environments.retail.scripted import ScriptedUser

        if self._live is None or not isinstance(self.parts.user, ScriptedUser):
            return None
        return RetailOracle(self, self.parts.user)

    def close(self) -> None:
        self._live = None
        self._parts = None


def well_formed(call: Call, parameters: Mapping[str, Mapping[str, str]]) -> bool:
    """Whether a call names a known tool with exactly its parameters, each of its type."""
    kinds = parameters.get(call.name)
    if kinds is None or set(kinds) != set(call.args):
        return False
    return all(_fits(call.args[key], kind) for key, kind in kinds.items()) and (
        call.name != RESPOND or bool(call.args["content"].strip())
    )


def _fits(value: object, kind: str) -> bool:
    if kind == "string":
        return isinstance(value, str)
    return isinstance(value, list) and bool(value) and all(isinstance(item, str) for item in value)


@dataclass(frozen=True)
class _Parts:
    """What an environment holds once it is used; `parameters` and `schemas` cover the tools and `respond`."""

    data: retail_data.RetailData
    database: Database
    box: Any
    user: UserSimulator
    judge: scoring.Judge | None
    parameters: Mapping[str, Mapping[str, str]]
    schemas: tuple[str, ...]

    @classmethod
    def make(cls, variant: str, folder: str | None, user: Any, judge: Any) -> _Parts:
        from harness.environments.retail.engine import Tool, Toolbox

        data = retail_data.load(variant, folder)
        database = Database(data.base)
        box = Toolbox(database, data.item_tool)
        respond = Tool(RESPOND, {"content": "string"}, "Send a message to the customer.", False)
        tools = (respond, *box.tools.values())
        return cls(
            data,
            database,
            box,
            _user(user, data),
            _judge(judge),
            {tool.name: tool.parameters for tool in tools},
            tuple(tool.schema() for tool in tools),
        )


def _user(user: Any, data: retail_data.RetailData) -> UserSimulator:
    if isinstance(user, str):
        if user != "scripted":
            raise UsageError(
                f"retail has no user {user!r}.{nearest(user, ('scripted',))} For an LLM user give a mapping."
            )
        from harness.environments.retail.scripted import ScriptedUser

        return ScriptedUser(data)
    if isinstance(user, Mapping):
        from harness.environments.retail.endpoint import endpoint
        from harness.environments.retail.llm import LLMUser

        return LLMUser(endpoint(user, "user"))
    found: UserSimulator = user
    return found


def _judge(judge: Any) -> scoring.Judge | None:
    if isinstance(judge, Mapping):
        from harness.environments.retail.endpoint import endpoint
        from harness.environments.retail.llm import LLMJudge

        return LLMJudge(endpoint(judge, "judge"))
    found: scoring.Judge | None = judge
    return found
