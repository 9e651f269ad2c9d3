"""`python -m harness.cli` is `cota-bench`."""

from harness.cli import main

main()
