"""Findings and how a list of checks is run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from harness.errors import EpisodeError, UsageError


class Unmet(AssertionError):
    """A requirement is not met; the message says which and how."""


class NotApplicable(Exception):
    """The check cannot say anything here; the message says why."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One check of one plugin."""

    kind: str
    plugin: str
    check: str
    verdict: Literal["ok", "failed", "not applicable"]
    message: str = ""


def require(condition: bool, message: str) -> None:
    """Raises `Unmet` with the message unless the condition holds."""
    if not condition:
        raise Unmet(message)


def run_checks(kind: str, name: str, checks: Iterable[Callable[[Any], None]], subject: Any) -> list[Finding]:
    """Every check's finding; one failure hides no other."""
    findings = []
    for test in checks:
        title = (test.__doc__ or test.__name__).strip().split("\n")[0].rstrip(".")
        try:
            test(subject)
        except NotApplicable as reason:
            findings.append(Finding(kind, name, title, "not applicable", str(reason)))
        except Unmet as failure:
            findings.append(Finding(kind, name, title, "failed", str(failure)))
        except UsageError as failure:
            findings.append(Finding(kind, name, title, "failed", str(failure)))
        except EpisodeError as failure:
            findings.append(Finding(kind, name, title, "failed", failure.reason))
        except (Exception, SystemExit) as error:  # noqa: BLE001  a finding about the plugin
            findings.append(Finding(kind, name, title, "failed", f"raised {type(error).__name__}: {error}"))
        else:
            findings.append(Finding(kind, name, title, "ok"))
    return findings
