"""The board's agent: describes the board, runs compiled models on it by the vendor's tool, and measures honestly."""

__version__ = "0.1.0"
