"""The TextWorld engine of ALFWorld, driven directly.

What the game is comes from TextWorld: the PDDL state in the planner library, the facts beside it, the grammar that
words every answer.  This driver replaces the loop around them (`PddlEnv`), for three reasons: that loop translates
each game four times before the first step, it words all thirty commands anew at each step though they depend on
constant facts, and it can neither be copied nor put back.  The tests compare both, text by text.

Nothing underneath is safe in threads (a shared parser, module-wide options, one planner library), so everything that
touches it holds one lock of the process.
"""

from __future__ import annotations

import ast
import functools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from textworld.envs.pddl import logic as pddl_logic
from textworld.envs.pddl import textgen
from textworld.generator.game import EntityInfo
from textworld.logic import Placeholder, Proposition, Variable

from harness.environments.alfworld.planner import LOCK, PLANNER
from harness.environments.alfworld.translation import (
    GameError,
    Translation,
    Translations,
    fill_task,
    split_atom,
)

NOTHING = "Nothing happens."
_PLAIN = re.compile(r"(?:[^\[\]{}#|]|\{\w+\})*")  # a template of words and names alone
Fact = tuple[str, tuple[str, ...]]

_TRANSLATIONS = Translations()


@functools.lru_cache(maxsize=512)
def _expression(text: str) -> ast.expr:
    return ast.parse(text.strip(), mode="eval").body


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """The value of one grammar expression: names, their attributes, text, `+` and `or`, and nothing else."""
    if isinstance(node, ast.Name) and node.id in names:
        return names[node.id]
    if isinstance(node, ast.Attribute) and not node.attr.startswith("_"):
        return getattr(_value(node.value, names), node.attr)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _value(node.left, names) + _value(node.right, names)
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
        return next((found for found in (_value(part, names) for part in node.values) if found), "")
    raise GameError(f"its grammar holds an expression that is not plain text ({ast.unparse(node)[:80]})")


def _derive(self: Any, context: Any = None) -> list[Any]:
    """In the place of `EvalSymbol.derive`, which runs a game file's text as Python code.

    The replacement gives the same for every grammar of the games and refuses code; besides, the original relies on
    `locals().update`, which does nothing from Python 3.13 on.
    """
    names = (context or self.context)["variables"]
    return [textgen.TerminalSymbol(_value(_expression(self.expression), names))]


textgen.EvalSymbol.derive = _derive


@dataclass(frozen=True, slots=True)
class Saved:
    """A state as plain text: atoms that differ from the game's start, and facts that do (`+` added, `-` removed)."""

    key: str
    flipped: tuple[str, ...]
    added: tuple[Fact, ...]
    removed: tuple[Fact, ...]


class _State(pddl_logic.PddlState):  # type: ignore[misc]
    """TextWorld's PDDL state, made from a remembered translation."""

    def __init__(self, translation: Translation) -> None:
        # The parent's constructor is left out on purpose: it is the one that translates, twice.
        self._facts: Any = defaultdict(set)
        self._vars_by_name: dict[str, Any] = {}
        self._vars_by_type: Any = defaultdict(set)
        self._var_counts: Any = Counter()
        self._logic = translation.logic
        self.downward_lib = PLANNER.library
        self.name2type = translation.types
        self._operators: dict[int, Any] = {}


class Names:
    """Display names ("mug 2"), made as the packaged games make them: numbered downwards in order of id."""

    def __init__(self, ids: Iterable[str]) -> None:
        groups: dict[str, list[str]] = defaultdict(list)
        self.shown: dict[str, str] = {}
        for ident in sorted(ids):
            kind, bar, _ = ident.partition("_bar_")
            if bar:
                groups[kind + ("basin" if "basin" in ident else "")].append(ident)
            else:
                self.shown[ident] = ident
        for kind, members in groups.items():
            for i, ident in enumerate(members):
                self.shown[ident] = f"{kind} {len(members) - i}"


class Engine:
    """One game at a time; `load` any number of games one after the other."""

    def __init__(self) -> None:
        self._key = ""
        self._bits: list[str] | None = None  # the state, followed by effects; None: only the library knows
        self._kept: str | None = None  # the state while another engine has the library
        self._game: Translation | None = None
        self._state: Any = None
        self._operators: dict[str, Any] | None = None
        self.names: Mapping[str, str] = {}

    @property
    def game(self) -> Translation:
        """The loaded game. Raises `RuntimeError` when there is none."""
        if self._game is None:
            raise RuntimeError("no game is loaded")
        return self._game

    def load(self, key: str, domain: str, grammar: str, problem: str) -> None:
        """Load a game, known by its content `key`, and put it at its start. Raises `GameError`."""
        with LOCK:
            self._game, self._key = _TRANSLATIONS.get(key, domain, grammar, problem), key
            self._begin(self._game.bits)
            self._state = _State(self._game)
            if self._game.prepared is None:
                self._game.prepared = self._prepare(self._game)
            facts, self.names, _ = self._game.prepared
            self._fill(facts)

    def opening(self) -> str:
        """The game's first text. Raises `GameError`."""
        with LOCK:
            game = self.game
            if game.opening is None:
                try:
                    self._claim()
                    self._applicable()
                    game.opening = fill_task(self._word("#intro#", {}), game.task)
                except GameError:
                    raise
                except Exception as error:
                    raise GameError(f"its grammar cannot word the start ({type(error).__name__}: {error})") from error
            return game.opening

    def commands(self) -> tuple[str, ...]:
        """The admissible commands, sorted."""
        with LOCK:
            self._claim()
            return tuple(sorted(self._applicable()))

    def won(self) -> bool:
        """The engine's goal condition."""
        with LOCK:
            self._claim()
            return PLANNER.won()

    def facts(self, predicates: frozenset[str]) -> tuple[Fact, ...]:
        """The true facts of some predicates, with ids."""
        with LOCK:
            groups = [group for signature, group in self._state._facts.items() if signature.name in predicates]
            return tuple((fact.name, tuple(fact.names)) for group in groups for fact in group)

    def step(self, command: str) -> str:
        """Execute and word the answer; a command that is not admissible changes nothing."""
        with LOCK:
            self._claim()
            operator = self._applicable().get(command)
            if operator is None:
                return NOTHING
            name, mapping = self._bind(operator.name)
            self._follow(name, self._state.apply(operator))
            self._operators = None
            return self._word(self.game.logic.actions[name].feedback_rule, mapping)

    def save(self) -> Saved:
        """The present state."""
        with LOCK:
            self._claim()
            game, now = self.game, self._present()
            pairs = zip(game.bits, now, strict=True)
            flipped = [i for i, (a, b) in enumerate(pairs) if a != b and i not in game.derived]
            base, facts = game.prepared[0], self._state._facts
            signatures = [s for s in base.keys() | facts.keys() if s.name.removeprefix("not_") in game.fluents]
            added = [f for s in signatures for f in facts.get(s, set()) - base.get(s, frozenset())]
            removed = [f for s in signatures for f in base.get(s, frozenset()) - facts.get(s, set())]
            return Saved(self._key, tuple(game.atoms[i] for i in flipped), _plain(added), _plain(removed))

    def put_back(self, saved: Saved) -> None:
        """Return to a saved state of the loaded game. Raises `ValueError` for a state of another game."""
        with LOCK:
            game = self.game
            if saved.key != self._key:
                raise ValueError("the snapshot belongs to another game")
            index = game.prepared[2]
            bits = list(game.bits)
            for atom in saved.flipped:
                bits[index[atom]] = "1" if bits[index[atom]] == "0" else "0"
            self._begin("".join(bits))
            self._fill(game.prepared[0])
            for fact in saved.removed:
                self._state._facts[self._proposition(fact).signature].discard(self._proposition(fact))
            for fact in saved.added:
                self._state._facts[self._proposition(fact).signature].add(self._proposition(fact))

    def close(self) -> None:
        """Give the library up; safe to call twice, and `load` makes the engine usable again."""
        with LOCK:
            PLANNER.leave(self)
            self._state = self._game = self._operators = self._bits = self._kept = None

    def vacate(self) -> None:
        """Called by the planner when another engine takes the library."""
        self._kept = self._present()

    # Below: the lock is held.

    def _begin(self, bits: str) -> None:
        PLANNER.load(self, self.game.text(bits))
        self._bits = list(bits)
        self._operators = self._kept = None

    def _present(self) -> str:
        """The state's bits; asking the library takes 10 ms in a kitchen, so they are followed where that is exact."""
        return PLANNER.bits() if self._bits is None else "".join(self._bits)

    def _follow(self, action: str, changes: Iterable[Any]) -> None:
        """Keep the bits true. The library tells of conditional effects whether they happened or not: ask it then."""
        if self._bits is None or action in self.game.conditional:
            self._bits = None
            return
        index = self.game.prepared[2]
        for fact in changes:
            atom = f"{fact.name.removeprefix('not_')}({', '.join(fact.names)})"
            self._bits[index[atom]] = "1" if fact.name.startswith("not_") else "0"

    def _claim(self) -> None:
        """Have the library hold this engine's state. Derived atoms go in at their default, the library decides them."""
        if not PLANNER.holds(self) and self._kept is not None:
            game = self.game
            self._begin("".join(game.bits[i] if i in game.derived else bit for i, bit in enumerate(self._kept)))

    def _fill(self, facts: Mapping[Any, frozenset[Any]]) -> None:
        """Facts go in beside TextWorld's counters of variables, which only its generator reads."""
        self._state._facts = defaultdict(set, {signature: set(group) for signature, group in facts.items()})
        for ident, kind in self.game.types.items():
            variable = Variable(ident, kind)
            self._state._vars_by_name[ident] = variable
            self._state._vars_by_type[kind].add(variable)
            self._state._var_counts[ident] = 1 << 30

    def _proposition(self, fact: Fact) -> Any:
        name, arguments = fact
        return Proposition(name, [Variable(ident, self.game.types[ident]) for ident in arguments])

    def _prepare(self, game: Translation) -> tuple[dict[Any, frozenset[Any]], dict[str, str], dict[str, int]]:
        """Start facts by signature, display names, and the index of each atom."""
        true = [split_atom(atom) for atom, bit in zip(game.atoms, PLANNER.bits(), strict=True) if bit == "0"]
        groups: dict[Any, set[Any]] = defaultdict(set)
        for fact in (*game.static, *true):
            proposition = self._proposition(fact)
            groups[proposition.signature].add(proposition)
        named = {ident for group in groups.values() for proposition in group for ident in proposition.names}
        shown = {ident: ident for ident in game.types} | Names(named).shown
        return {s: frozenset(g) for s, g in groups.items()}, shown, {atom: i for i, atom in enumerate(game.atoms)}

    def _bind(self, operator: str) -> tuple[str, dict[Any, Any]]:
        """An operator's action and the game's things in the places of its parameters."""
        name, *arguments = operator.split()
        pairs = zip(self.game.parameters[name], arguments, strict=False)
        return name, {Placeholder(*p): Variable(ident, p[1]) for p, ident in pairs}

    def _word(self, symbol: str, mapping: Mapping[Any, Any]) -> str:
        things = {name: EntityInfo(name, kind) for name, kind in self.game.types.items()}
        for thing in things.values():
            thing.name, thing.definite, thing.indefinite = self.names[thing.id], "the", "a"
        context = {
            "state": self._state,
            "facts": (),
            "variables": {place.name: things[variable.name] for place, variable in mapping.items()},
            "mapping": dict(mapping),
            "entity_infos": things,
        }
        return str(self.game.logic.grammar.derive(symbol, context))

    def _command(self, operator: str) -> str:
        """The command of an operator, remembered as long as it rests on constant facts alone."""
        name, *arguments = operator.split()
        template = self.game.logic.actions[name].template
        things = {p: ident for (p, _), ident in zip(self.game.parameters[name], arguments, strict=False)}
        if _PLAIN.fullmatch(template):
            return str(template.format(**{place: self.names[ident] for place, ident in things.items()}))
        key = (name, *(ident for place, ident in things.items() if place in _words(template)))
        known = self.game.commands.get(key)
        if known is None:
            known = self._word(template, self._bind(operator)[1])
            known = known.format(**{place: self.names[ident] for place, ident in things.items()})
            if not _words(template) & self.game.fluents:
                self.game.commands[key] = known
        return known

    def _applicable(self) -> dict[str, Any]:
        """Operators by command; of several with one command (they do the same) the first."""
        if self._operators is None:
            operators = PLANNER.operators()
            self._state._operators = {operator.id: operator for operator in operators}
            self._operators = {}
            for operator in operators:
                self._operators.setdefault(self._command(operator.name), operator)
        return self._operators


@functools.lru_cache(maxsize=512)
def _words(template: str) -> frozenset[str]:
    """The words of a command template: parameters and predicates it rests on are among them."""
    return frozenset(re.findall(r"\w+", template))


def _plain(facts: Iterable[Any]) -> tuple[Fact, ...]:
    return tuple(sorted((fact.name, tuple(fact.names)) for fact in facts))
