"""Lifting rank 1-3 regions of a graph to 4-D tensors with a free batch axis."""
