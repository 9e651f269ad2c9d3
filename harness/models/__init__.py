"""Language models behind endpoints and on this machine: one client, one limiter an endpoint, usage as reported.

Nothing here knows episodes: actors, judges and advisers build their requests and say what a failure means to them.
"""
