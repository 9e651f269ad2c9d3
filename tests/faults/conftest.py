"""The plugins of the grid's tests serve here too; tests marked `long` run only when asked for: `pytest -m long`."""

from __future__ import annotations

import pytest

from tests.grid.conftest import _plugins  # noqa: F401


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the long ones out of an ordinary run."""
    if "long" in config.option.markexpr:
        return
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.skip(reason="long: pytest -m long tests/faults"))
