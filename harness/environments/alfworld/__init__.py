"""ALFWorld: household tasks in text; see `environment` for the design, `games` for the data."""

from harness.environments.alfworld.environment import AlfWorld

__all__ = ["AlfWorld"]
