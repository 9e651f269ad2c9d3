"""From PDDL to what the engine steps on, kept for games seen before.

Translating a kitchen takes some 300 ms, loading the result 3 ms, so translations are remembered: the last
`CAPACITY` games of a process, the planner's text compressed (a megabyte becomes 70 kB).  The packaged entry point
`pddl2sas` is not used because it translates twice (once for a planner that nobody asks here), leaves a changed
`sys.argv` behind and swaps `sys.stdout`, which loses what other threads print meanwhile.  This module calls the same
translator directly, with the same options.

The engine keeps its state in binary variables, each a true or a negated atom.  The text of the start state is a
section of its own, so that any reached state can be written in its place: that is what makes snapshots exact.
"""

from __future__ import annotations

import re
import sys
import zlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

CAPACITY = 160  # translations kept in a process, some 0.5 to 1 MB each: the 134 valid-unseen games fit
_TASK = re.compile(r"(Your task is to: )([^\"\\]*)")
_MARK = "@task@"


class GameError(Exception):
    """A game that cannot be loaded; the message says what is wrong with it, not where it lies."""


@dataclass(slots=True)
class Translation:
    """One game, ready to be loaded into the planner library; everything here is constant except the two memos.

    `bits` holds one character a variable, "0" for a true atom; `derived` are the variables that axioms decide.
    """

    packed: bytes
    cut: tuple[int, int]
    bits: str
    atoms: tuple[str, ...]
    derived: frozenset[int]
    fluents: frozenset[str]
    types: Mapping[str, str]
    static: tuple[tuple[str, tuple[str, ...]], ...]
    parameters: Mapping[str, tuple[tuple[str, str], ...]]
    conditional: frozenset[str]  # actions with effects that depend on the state
    goal: str
    logic: Any
    task: str | None
    prepared: Any = None  # facts and names, made by the engine on first use
    commands: dict[tuple[str, ...], str] = field(default_factory=dict)  # (action, things named) -> command
    opening: str | None = None

    def text(self, bits: str) -> bytes:
        """The planner's input with `bits` as the state to start from."""
        whole = zlib.decompress(self.packed)
        return whole[: self.cut[0]] + "\n".join(bits).encode() + whole[self.cut[1] :]


def _translator() -> Any:
    """The translator's modules, imported without a trace in `sys.argv` and silenced without touching `sys.stdout`."""
    argv = sys.argv
    sys.argv = ["translate", "domain", "task"]  # its options are parsed on import
    try:
        from fast_downward.translate import normalize, options, translate
        from fast_downward.translate.pddl_parser import lisp_parser, parsing_functions
    finally:
        sys.argv = argv
    for name, module in list(sys.modules.items()):
        if name.startswith("fast_downward.translate") and module is not None:
            module.__dict__.setdefault("print", _silent)
    return options, lisp_parser, parsing_functions, normalize, translate


def _silent(*values: object, **options: Any) -> None:
    """In the place of `print` in the translator's modules: what goes to a named stream is its output, the rest chat."""
    if options.get("file") is not None:
        print(*values, **options)


def _translate(domain: str, problem: str) -> tuple[Any, str]:
    """The planner task and its SAS text. Raises `GameError`."""
    import io

    options, lisp, parsing, normalize, translate = _translator()
    options.filter_unimportant_vars = False  # nothing may be pruned: what cannot help can still be done
    options.filter_unreachable_facts = False
    options.use_partial_encoding = False
    options.add_implied_preconditions = False
    options.invariant_generation_max_candidates = 0  # binary variables only
    try:
        parsed = [lisp.parse_nested_list(text.split("\n")) for text in (domain, problem)]
        task = parsing.parse_task(*parsed)
        normalize.normalize(task)
        out = io.StringIO()
        translate.pddl_to_sas(task).output(out)
    except (Exception, SystemExit) as error:  # the translator exits on malformed input
        raise GameError(f"its PDDL cannot be translated ({type(error).__name__}: {str(error)[:200]})") from error
    return task, out.getvalue()


def _split(sas: str) -> tuple[tuple[int, int], str, tuple[str, ...], frozenset[int]]:
    """Where the start state stands in the text, its bits, the atoms and the derived variables."""
    rows = re.findall(r"begin_variable\n\S+\n(-?\d+)\n(\d+)\n(.*)\n(.*)\nend_variable", sas)
    if not rows or any(size != "2" or yes[:5] != "Atom " or no[:7] != "Negated" for _, size, yes, no in rows):
        raise GameError("its translation has variables that are not binary")
    start = sas.index("begin_state\n") + len("begin_state\n")
    end = sas.index("\nend_state")
    bits = sas[start:end].replace("\n", "")
    if len(bits) != len(rows):
        raise GameError("its translation has a start state of the wrong length")
    derived = frozenset(i for i, row in enumerate(rows) if row[0] != "-1")
    return (start, end), bits, tuple(row[2].removeprefix("Atom ") for row in rows), derived


def split_atom(atom: str) -> tuple[str, tuple[str, ...]]:
    """`holds(agent1, mug)` as ("holds", ("agent1", "mug"))."""
    name, _, rest = atom.partition("(")
    return name, tuple(part for part in rest.rstrip(")").split(", ") if part)


def _static(task: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Facts of the start state as the problem lists them, without equalities and costs."""
    rows: list[tuple[str, tuple[str, ...]]] = []
    for atom in task.init:
        predicate = getattr(atom, "predicate", "=")
        if predicate != "=":
            rows.append((predicate, tuple(atom.args)))
    return tuple(rows)


def _parse_logic(domain: str, grammar: str) -> Any:
    from textworld.envs.pddl.logic import GameLogic

    try:
        return GameLogic(domain, grammar)
    except (Exception, SystemExit) as error:  # TatSu raises a dozen kinds
        raise GameError(f"its grammar cannot be parsed ({type(error).__name__}: {str(error)[:200]})") from error


class Translations:
    """The memo of one process. Not locked here: the engine holds its lock around every call."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self.capacity = capacity
        self._games: OrderedDict[str, Translation] = OrderedDict()
        self._logics: OrderedDict[tuple[str, str], Any] = OrderedDict()

    def get(self, key: str, domain: str, grammar: str, problem: str) -> Translation:
        """The translation of a game under its content key, made when it is not remembered. Raises `GameError`."""
        found = self._games.get(key)
        if found is None:
            found = self._games[key] = self._make(domain, grammar, problem)
            while len(self._games) > self.capacity:
                self._games.popitem(last=False)
        self._games.move_to_end(key)
        return found

    def _logic(self, domain: str, grammar: str) -> Any:
        """The parsed grammar; games that differ in the task sentence alone share one (parsing takes 80 ms)."""
        found = self._logics.get((domain, grammar))
        if found is None:
            found = self._logics[domain, grammar] = _parse_logic(domain, grammar)
            while len(self._logics) > 8:
                self._logics.popitem(last=False)
        return found

    def _make(self, domain: str, grammar: str, problem: str) -> Translation:
        sentences = _TASK.findall(grammar)
        task = sentences[0][1] if len(sentences) == 1 else None
        logic = self._logic(domain, grammar if task is None else _TASK.sub(rf"\g<1>{_MARK}", grammar))
        parsed, sas = _translate(domain, problem)
        cut, bits, atoms, derived = _split(sas)
        start = problem.find("(:goal")
        types = {item.name: item.type_name for item in parsed.objects}
        _declare(logic, parsed.types)
        return Translation(
            packed=zlib.compress(sas.encode(), 1),
            cut=cut,
            bits=bits,
            atoms=atoms,
            derived=derived,
            fluents=frozenset(split_atom(atom)[0] for atom in atoms),
            types=types,
            static=_static(parsed),
            parameters={a.name: _parameters(a.parameters) for a in parsed.actions},
            conditional=frozenset(a.name for a in parsed.actions if _conditional(a)),
            goal=problem[start:] if start >= 0 else "",
            logic=logic,
            task=task,
        )


def _conditional(action: Any) -> bool:
    return any(type(effect.condition).__name__ != "Truth" for effect in action.effects)


def _parameters(parameters: Sequence[Any]) -> tuple[tuple[str, str], ...]:
    return tuple((item.name.strip("?"), item.type_name) for item in parameters)


def _declare(logic: Any, types: Sequence[Any]) -> None:
    """Tell the grammar's queries the domain's types, once."""
    from textworld.logic import Type

    for item in types:
        try:
            logic.types.get(item.name)
        except KeyError:
            logic.types.add(Type(item.name, item.supertype_names))


def fill_task(text: str, task: str | None) -> str:
    """Put the task sentence back that `Translations` took out of the shared grammar."""
    return text if task is None else text.replace(_MARK, task)
