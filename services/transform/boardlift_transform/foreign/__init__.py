"""Operators of foreign domains written in ONNX's own: one file per domain."""
