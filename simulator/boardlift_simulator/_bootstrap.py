"""Started by path inside the toolchain's interpreter: makes this one package importable, nothing around it."""

import importlib.util
import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent


def _load() -> None:
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != _HERE]
    spec = importlib.util.spec_from_file_location(
        "boardlift_simulator", _HERE / "__init__.py", submodule_search_locations=[str(_HERE)]
    )
    if spec is None or spec.loader is None:
        raise SystemExit("boardlift_simulator cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    sys.modules["boardlift_simulator"] = module
    spec.loader.exec_module(module)


if __name__ == "__main__":
    _load()
    program = sys.argv.pop(1)
    if program == "sample_latency":
        from boardlift_simulator.sample_latency import main
    else:
        from boardlift_simulator.run_command import main
    raise SystemExit(main())
