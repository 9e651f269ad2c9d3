"""Candidate sources: mu(.|s), the reference distribution that a proposal is compared with (paper appendix B.6)."""
