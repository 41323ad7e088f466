"""Models: adapters to language models and embedders."""
