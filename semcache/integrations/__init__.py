"""Adapters for frameworks, one file each: `semcache.integrations.langchain` needs its extra."""
