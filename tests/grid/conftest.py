"""The tests' own plugins, registered for this folder only, through real entry points."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from harness import registry

PLUGINS = Path(__file__).parent / "plugins"


@pytest.fixture(scope="module", autouse=True)
def _plugins():
    """On the path of this process and of the ones it starts; gone afterwards."""
    before = os.environ.get("PYTHONPATH")
    sys.path.insert(0, str(PLUGINS))
    root = str(Path(__file__).parents[2])
    os.environ["PYTHONPATH"] = os.pathsep.join([str(PLUGINS), root, *([before] if before else [])])
    registry._points.cache_clear()
    yield
    sys.path.remove(str(PLUGINS))
    if before is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = before
    registry._points.cache_clear()
