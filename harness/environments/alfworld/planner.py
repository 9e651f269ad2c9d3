"""The planner library that holds the game states: one for the whole process, lent from engine to engine.

The library keeps one state in global variables.  The package's own way to have several is to load copies of the
34 MB file; copies cost memory and disk, leak when they stay open and crash the interpreter's exit when they are
closed (their exit handlers are gone by then).  Here all engines share the installed file: whoever needs the library
claims it under the lock, the one before is asked to keep its state (a few thousand bits), and gets it back the same
way.  An engine alone in its process never pays for that; engines in threads pay some milliseconds a change.
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from typing import Any, Protocol

import fast_downward
from fast_downward.interface import DOWNWARD_LIB_PATH


class Tenant(Protocol):
    """Who uses the library."""

    def vacate(self) -> None:
        """Keep the state, which the library still holds; it is about to hold another's."""


LOCK = threading.RLock()


class Planner:
    """The library. Every call needs the lock."""

    def __init__(self) -> None:
        self._library: Any = None
        self._tenant: weakref.ref[Tenant] | None = None

    @property
    def library(self) -> Any:
        """The loaded library, for TextWorld's own calls."""
        if self._library is None:
            library = ctypes.CDLL(os.fspath(DOWNWARD_LIB_PATH))
            library.load_sas.argtypes, library.load_sas.restype = [ctypes.c_char_p], None
            library.get_applicable_operators.argtypes = [ctypes.POINTER(fast_downward.Operator)]
            library.get_applicable_operators.restype = None
            library.get_state.argtypes, library.get_state.restype = [ctypes.POINTER(fast_downward.Atom)], None
            library.apply_operator.argtypes = [ctypes.c_int, ctypes.POINTER(fast_downward.Atom)]
            library.check_goal.restype = ctypes.c_bool
            self._library = library
        return self._library

    def holds(self, tenant: Tenant) -> bool:
        """Whether the library's state is this tenant's."""
        return self._tenant is not None and self._tenant() is tenant

    def load(self, tenant: Tenant, sas: bytes) -> None:
        """Put a tenant's state in; another's is given to it to keep."""
        before = self._tenant() if self._tenant is not None else None
        if before is not None and before is not tenant:
            before.vacate()
        self._tenant = None
        self.library.load_sas(sas)
        self._tenant = weakref.ref(tenant)

    def leave(self, tenant: Tenant) -> None:
        """The tenant needs its state no more."""
        if self.holds(tenant):
            self._tenant = None

    def bits(self) -> str:
        """The state, one character a variable: "0" for a true atom, "1" for a negated one."""
        atoms = (fast_downward.Atom * self.library.get_state_size())()
        self.library.get_state(atoms)
        first = ctypes.string_at(atoms, ctypes.sizeof(atoms))[:: ctypes.sizeof(fast_downward.Atom)]
        return first.decode("ascii").replace("A", "0").replace("N", "1")

    def operators(self) -> list[Any]:
        """The operators that can be applied now."""
        found = (fast_downward.Operator * self.library.get_applicable_operators_count())()
        self.library.get_applicable_operators(found)
        return list(found)

    def won(self) -> bool:
        """The goal condition."""
        return bool(self.library.check_goal())


PLANNER = Planner()


def _renew_lock() -> None:
    """A child made by fork must not inherit a lock that another thread of the parent held."""
    LOCK._at_fork_reinit()  # type: ignore[attr-defined]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)
