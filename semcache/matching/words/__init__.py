"""Words: which words of a prompt matter, and how those of two prompts differ."""
