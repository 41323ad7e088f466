"""What happened on the way of a prompt, as a tree that people and agents can look at."""
