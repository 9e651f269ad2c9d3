"""WebShop: the shop, its catalogues and its goals. Importing this is light; data and models load at the first use."""

from harness.environments.webshop.environment import WebShop, below_one

__all__ = ["WebShop", "below_one"]
