"""Why outputs are wrong: known mistakes, tried for real, and the tree that names the one that explains it."""
