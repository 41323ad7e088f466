"""The program format: instructions that run one after the other, with jumps."""
