"""The commands of `semcache`, one file a group; each adds itself to the parser by `add`."""

GROUPS = {
    "ask": {
        "ask": "Answer a prompt; plan only if no plan fits.",
        "explain": "Show why a prompt hits or misses.",
        "answer": "Answer what `ask` came back with.",
    },
    "entries": {
        "stats": "Show what the lookups of the tenant came to.",
        "list": "List the cached plans of the tenant.",
        "clear": "Remove all plans of the tenant, and all that models answered.",
        "remove": "Remove plans.",
        "evidence": "Show what the tenant's labels say of words and hits.",
        "export": "Write the plans of the tenant to a file.",
        "import": "Read plans of the tenant from a file.",
    },
    "upkeep": {
        "doctor": "Say what is wrong and the way out.",
        "verify": "Check every entry and the index.",
        "compact": "Remove what expired and give its room back to the disk.",
        "migrate": "Copy all plans to another place.",
        "warm": "Store the plans of a file of JSON lines.",
        "warm-up": "Load embedder and plans once, and leave what opens them quickly.",
    },
    "demo": {"demo": "Ask many prompts and check each answer against SQL."},
    "doors": {
        "serve": "Serve the cache over HTTP to those who hold a token, with a page to look at it.",
        "mcp": "Serve the cache by MCP: over stdio, or over HTTP to those who hold a token.",
    },
    "plans": {"plan": "Check or run a plan in a file."},
    "replays": {
        "evaluate": "Replay streams against a cold cache and say how well it matched.",
        "tune": "Recommend a threshold or max_wrong, with its confidence, from a stream.",
        "train": "Adapt the embedder to your own prompts, if it serves better then.",
    },
}
"""Module → its commands, each with its line in the help; one place, so that the help of all of them
loads none."""
SUMMARIES = {name: summary for group in GROUPS.values() for name, summary in group.items()}
"""Command → its line in the help."""
