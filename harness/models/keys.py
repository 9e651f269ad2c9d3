"""Keys: read from the environment at the moment of use, held nowhere, taken out of every message."""

from __future__ import annotations

import os

from harness.errors import UsageError

NO_KEY = "none"  # what servers that need no key are sent
_used: set[str] = set()  # names of variables whose value was sent somewhere


def key_for(key_env: str | None, where: str) -> str:
    """The value of the variable `key_env`, or a placeholder when it is None. Raises `UsageError` when it is not set."""
    if key_env is None:
        return NO_KEY
    key = os.environ.get(key_env, "").strip()
    if not key:
        raise UsageError(
            f"{where} needs a key: set the environment variable {key_env}, "
            "or leave out `key_env` when the server needs none."
        )
    if not (key.isascii() and key.isprintable()):
        raise UsageError(f"The environment variable {key_env} holds characters that no key can have.")
    _used.add(key_env)
    return key


def redact(text: str) -> str:
    """The text without any key that this process has sent (servers like to repeat what they were sent)."""
    for name in sorted(_used):
        key = os.environ.get(name, "").strip()
        if len(key) >= 4:
            text = text.replace(key, "[key]")
    return text
