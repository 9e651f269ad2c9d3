"""tau3-Retail: a customer service agent with database-backed tools, a policy and a simulated customer.

The engine and the data are the official ones; the loop over the tools, the scoring, the database copy and the users
are this package's.  See `env` for the rules of an episode.
"""

from harness.environments.retail.env import Retail

__all__ = ["Retail"]
