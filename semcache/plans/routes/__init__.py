"""The routes format: nodes, and routes between them."""
