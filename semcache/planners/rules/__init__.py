"""Planning of one operation by rules: the rule normaliser, and the plan that a schema settles."""
