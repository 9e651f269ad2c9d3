"""Same-prefix branching: collect branches, make pairs of them, audit interventions with them (paper appendix B)."""
