"""The harness: records, protocols, the loop, and everything that runs, keeps and tracks episodes."""
