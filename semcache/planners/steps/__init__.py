"""The modular planner: a goal becomes steps, steps find operations, operations become a plan."""
