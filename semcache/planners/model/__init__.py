"""Planning by a language model: normaliser, planner, decomposer, and how a model is asked."""
