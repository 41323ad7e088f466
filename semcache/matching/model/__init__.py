"""Models of risk: how probable it is that a candidate's plan is wrong for a prompt."""
