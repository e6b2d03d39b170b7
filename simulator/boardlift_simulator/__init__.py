"""A simulated board: `hrt_model_exec`'s command line, executing real compiled models on x86.

Imports nothing else of boardlift: it stands in for a foreign program and is only ever started as a process. The
parts that execute models need numpy and protobuf and therefore run in the vendor toolchain's own interpreter;
`launch` is what gets them there and needs neither.
"""

__version__ = "0.1.0"
