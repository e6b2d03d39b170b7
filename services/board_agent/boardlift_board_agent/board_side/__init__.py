"""Programs that run in the board's system Python, not in the agent's environment. They import nothing of ours."""
