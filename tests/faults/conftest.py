"""The plugins of the grid's tests serve here too."""

from tests.grid.conftest import _plugins  # noqa: F401
