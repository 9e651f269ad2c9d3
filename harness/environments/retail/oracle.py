"""What a simulated actor may know: the next good action, plausible mistakes, and how good an action is.

Values are computed, not guessed: a change is tried on the copied database together with the golden changes that are
left, and a message is put to the scripted customer's pure reply function.  A change after which the golden end state is
out of reach is near 0; a look-up that is not needed is a little below the expert's action.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.environments.retail import scoring
from harness.environments.retail.actions import RESPOND, TRANSFER, Call, make, parse, say
from harness.environments.retail.persona import Goal, address
from harness.environments.retail.pool import ASK_EMAIL, ASK_MORE, ASK_NAME, REFUSE
from harness.environments.retail.scripted import ScriptedUser, State
from harness.environments.retail.slips import wrong_changes
from harness.environments.retail.user import AGENT_STOP, TRANSFER_PHRASE
from harness.errors import IllegalAction
from harness.records import Action

if TYPE_CHECKING:
    from harness.environments.retail.env import Retail

LOST, FALSE, REPEATED, NEEDLESS, USEFUL, GOOD = 0.02, 0.3, 0.55, 0.75, 0.9, 1.0
UNCONFIRMED, FAILS, HANDOVER = 0.6, 0.4, 0.15
DONE = "This has been done."
TRANSFERRED = f"{TRANSFER_PHRASE}. PLEASE HOLD ON."
LIST_PRODUCTS = make("list_all_product_types", {})
HAND_OVER = make(TRANSFER, {"summary": "The customer needs help that I cannot give."})


class RetailOracle:
    """Latent knowledge of one moment of an episode; make a new one after each step (`Retail.oracle` does)."""

    def __init__(self, env: Retail, user: ScriptedUser) -> None:
        self.env = env
        self.user = user
        self.state: State = user.state
        self.task = env.live.task
        self.golden = env.parts.data.golden(self.task.id)
        self._done = {name for name, failed in env.live.calls if not failed}
        self._tried = {name for name, _ in env.live.calls}
        self._expert: Action | None = None
        self._mistakes: tuple[Action, ...] | None = None
        self._alive: bool | None = None

    # -- the expert ---------------------------------------------------------------------------------------------

    def expert(self) -> Action:
        """Identify, look up, then for each wish: propose, change, report; tell what was asked; end."""
        if self._expert is None:
            self._expert = self._identify() or self._look_up() or self._serve()
        return self._expert

    def _identify(self) -> Action | None:
        who, told = self.user.persona, self.state.told
        if self.env.live.found == who.user_id:
            return None
        if "email" in told:
            for email in who.emails:
                tried = make("find_user_id_by_email", {"email": email})
                if tried.canonical not in self._tried:
                    return tried
        if "name" in told and "zip" in told:
            return make("find_user_id_by_name_zip", {"first_name": who.first, "last_name": who.last, "zip": who.zip})
        if not told:
            return say(ASK_EMAIL)
        missing = [key for key in ("name", "zip") if key not in told]
        if len(missing) == 2:
            return say(ASK_NAME)
        return say(
            f"Thank you. Could you please also tell me your {'zip code' if missing == ['zip'] else 'full name'}?"
        )

    def _needed(self) -> list[Action]:
        """Look-ups a careful agent makes for the goals: the user, the orders, the products of new items."""
        tables = self.env.parts.data.base.tables
        found = [make("get_user_details", {"user_id": self.user.persona.user_id})]
        for call in self.golden.writes or self.task.actions:
            key = call.args.get("order_id")
            if key not in tables["orders"]:
                continue
            found.append(make("get_order_details", {"order_id": key}))
            swapped = call.args.get("item_ids", ()) if "new_item_ids" in call.args else ()
            for item in tables["orders"][key].items:
                if item.item_id in swapped:
                    found.append(make("get_product_details", {"product_id": item.product_id}))
        return list({action.canonical: action for action in found}.values())

    def _look_up(self) -> Action | None:
        if len(self._written()) == len(self.golden.writes) and self.golden.writes:
            return None
        return next((action for action in self._needed() if action.canonical not in self._done), None)

    def _written(self) -> list[Call]:
        """Golden changes that were made."""
        return [call for call in self.golden.writes if call.action().canonical in self._done]

    def _next(self) -> tuple[int, Goal, Call] | None:
        """The first wish whose change has not been tried (one that failed stays undone)."""
        for index, goal in enumerate(self.user.goals):
            if goal.call is not None and goal.call.action().canonical not in self._tried:
                return index, goal, goal.call
        return None

    def _serve(self) -> Action:
        upcoming = self._next()
        if upcoming is None:
            return self._finish()
        index, goal, call = upcoming
        if index >= self.state.revealed:
            return say(f"{DONE} {ASK_MORE}" if self._written() else ASK_MORE)
        return call.action() if index in self.state.agreed else say(propose(goal, call))

    def _finish(self) -> Action:
        untold = [info for index, info in enumerate(self.task.communicate) if index not in self.state.heard]
        report = f"For your information: {'; '.join(untold)}. " if untold else ""
        if any(goal.kind == "transfer" for goal in self.user.goals) and not untold:
            called = any(parse_name(name) == TRANSFER for name in self._done)
            return say(TRANSFERRED) if called else make(TRANSFER, {"summary": "The rest is beyond what I can do."})
        if self.golden.writes:
            return say(f"{DONE} {report}{ASK_MORE}")
        return say(f"{report}{ASK_MORE}" if report else REFUSE)

    # -- mistakes -------------------------------------------------------------------------------------------------

    def mistakes(self) -> Sequence[Action]:
        """Wrong actions that agents make here: legal, distinct, none the expert's; the most telling first."""
        if self._mistakes is None:
            expert = self.expert().canonical
            found = {action.canonical: action for action in self._candidates()}
            self._mistakes = tuple(action for key, action in found.items() if key != expert)
        return self._mistakes

    def _candidates(self) -> list[Action]:
        upcoming, who = self._next(), self.user.persona
        if self.env.live.found != who.user_id:
            guess = make("find_user_id_by_email", {"email": f"{who.first}.{who.last}@example.com".lower()})
            return [LIST_PRODUCTS, *([guess] if "name" in self.state.told else []), say(ASK_MORE), HAND_OVER]
        found = [say(TRANSFERRED)] if HAND_OVER.canonical in self._done else []
        if upcoming is not None:
            index, goal, call = upcoming
            wrong = wrong_changes(self.env.parts.data, call, who.user_id)
            if index in self.state.agreed:
                found += [*wrong, say(f"{DONE} {ASK_MORE}")]
            else:
                found += [*wrong[:2], call.action(), say(propose(goal, parse(wrong[0].text)) if wrong else ASK_MORE)]
        else:
            found += [say("Thank you for contacting us. Goodbye! ###STOP###")]
        again = next((make("get_order_details", {"order_id": key}) for key in self._other_orders()), None)
        return [*found, *([again] if again else []), LIST_PRODUCTS, say(REFUSE), HAND_OVER]

    def _other_orders(self) -> list[str]:
        user = self.env.parts.data.base.tables["users"][self.user.persona.user_id]
        needed = {action.canonical for action in self._needed()}
        return [key for key in user.orders if make("get_order_details", {"order_id": key}).canonical not in needed]

    # -- values ---------------------------------------------------------------------------------------------------

    def value(self, action: Action) -> float:
        """How good `action` is now, in [0, 1]; once the golden end state is out of reach nothing is above 0.05."""
        try:
            call = parse(action.text)
        except IllegalAction:
            return FAILS
        if not self.alive():
            return 0.05 if action.canonical == self.expert().canonical else LOST
        if action.canonical == self.expert().canonical:
            return GOOD
        if not self.env.legal(action):
            return FAILS
        if call.name == RESPOND:
            return self._message(str(call.args["content"]))
        if call.name == TRANSFER:
            return NEEDLESS if any(goal.kind == "transfer" for goal in self.user.goals) else HANDOVER
        return self._change(action, call) if self.env.parts.box.tools[call.name].writes else self._read(action, call)

    def alive(self) -> bool:
        """Whether the golden end state can still be reached from the present database."""
        if self._alive is None:
            self._alive = self._reachable(None)[0]
        return self._alive

    def _reachable(self, call: Call | None) -> tuple[bool, bool]:
        """(golden end state reachable after `call`, whether `call` fails); the database is left as it was."""
        database, box = self.env.parts.database, self.env.parts.box
        if call is None and not database.changes() and not self._written():
            return True, False
        before = database.freeze()
        failed = False
        left = [step for step in self.golden.writes if step.action().canonical not in self._done]
        try:
            if call is not None:
                _, failed = box.call(call.name, call.args)
                left = [step for step in left if failed or step.action().canonical != call.action().canonical]
            for step in left:
                box.call(step.name, step.args)
            return database.changes() == self.golden.changes, failed
        finally:
            database.thaw(before)

    def _change(self, action: Action, call: Call) -> float:
        reachable, failed = self._reachable(call)
        if failed:
            return FAILS
        if not reachable:
            return LOST
        agreed = [goal.call.action().canonical for i in self.state.agreed if (goal := self.user.goals[i]).call]
        return USEFUL if action.canonical in agreed else UNCONFIRMED

    def _read(self, action: Action, call: Call) -> float:
        if action.canonical in self._done:
            return REPEATED
        _, failed = self.env.parts.box.call(call.name, call.args)
        if failed:
            return FAILS
        return USEFUL if action.canonical in {need.canonical for need in self._needed()} else NEEDLESS

    def _message(self, content: str) -> float:
        stop = AGENT_STOP in content
        said = content.replace(AGENT_STOP, "").strip()
        _, after, ended = self.user.respond(self.state, content)
        if stop or ended:
            return GOOD if self._final(said) else LOST
        expert = parse(self.expert().text)
        if expert.name == RESPOND:
            _, best, _ = self.user.respond(self.state, str(expert.args["content"]))
            if best == after:
                return GOOD
        undone = {i for i, goal in enumerate(self.user.goals) if goal.call and goal.call not in self._written()}
        if undone & (set(after.closed) - set(self.state.closed)):
            return FALSE
        moved = after._replace(turn=0, idle=0) != self.state._replace(turn=0, idle=0)
        return USEFUL if moved else REPEATED

    def _final(self, said: str) -> bool:
        messages = (*self.env.live.messages, ("assistant", said))
        result = scoring.score(self.task, self.golden, self.env.parts.database, messages)
        return result.reward == 1.0 or (result.reward is None and bool(result.info["db_match"]))

    # -- thoughts -------------------------------------------------------------------------------------------------

    def reason(self, action: Action) -> str:
        """A short thought for taking `action`, from its form alone."""
        try:
            call = parse(action.text)
        except IllegalAction:
            return "I should answer."
        about = call.args.get("order_id") or call.args.get("product_id") or call.args.get("user_id") or "this"
        if call.name == RESPOND:
            return "I should say this to the customer first."
        if call.name == TRANSFER:
            return "A human agent should take over."
        if call.name.startswith("find_"):
            return "I need to find the customer's account."
        if call.name.startswith(("get_", "list_")):
            return f"I should look up {about if call.name.startswith('get_') else 'the products'} before I go on."
        return f"I can make this change to {about} now."


def parse_name(canonical: str) -> str:
    """The action name of a canonical text."""
    return canonical.partition("(")[0]


def propose(goal: Goal, call: Call) -> str:
    """The agent's proposal of a goal's change (or of another one, as a mistake), with every detail."""
    args = call.args
    on = f" for order {args['order_id']}" if "order_id" in args else ""
    verb = {
        "cancel": f"cancel the order{on}, reason: {args.get('reason')}",
        "return": f"return items {', '.join(args.get('item_ids', ()))}{on}",
        "exchange": f"exchange items {_pairs(call)}{on}",
        "modify": f"modify items {_pairs(call)}{on}",
        "payment": f"change the payment{on}",
        "profile": f"change the default address of your account to {address(args) if 'zip' in args else ''}",
        "address": f"change the shipping address{on} to {address(args) if 'zip' in args else ''}",
    }[goal.kind]
    method = f", payment method {args['payment_method_id']}" if "payment_method_id" in args else ""
    return f"I will {verb}{method}. Do you confirm (yes/no)?"


def _pairs(call: Call) -> str:
    pairs = zip(call.args.get("item_ids", ()), call.args.get("new_item_ids", ()), strict=False)
    return ", ".join(f"{old} to {new}" for old, new in pairs)
