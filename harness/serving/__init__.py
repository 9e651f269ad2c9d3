"""Serving: start what a study's endpoints need on this machine, wait for it, and write down what runs.

`plan` says which servers a study needs and how each is started, `run` starts them.  Both know addresses and models from
the study's own parameters, so there is no second file that could disagree with it.
"""

from harness.serving.plan import Server, find_endpoints, plan
from harness.serving.run import serve

__all__ = ["Server", "find_endpoints", "plan", "serve"]
