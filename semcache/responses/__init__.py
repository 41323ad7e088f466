"""The exact response cache: equal requests of a model, answered once."""
