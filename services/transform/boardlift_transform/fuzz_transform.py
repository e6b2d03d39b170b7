"""Fuzz the transform with damaged models: `python -m boardlift_transform.fuzz_transform COUNT SEED`.

Every model must end in a result that equals the original, or in a `Refusal`, within the time limit. Prints one JSON
line with counts; exits with 1 at the first model that does otherwise, and says which.
"""

from __future__ import annotations

import json
import signal
import sys
import time
import traceback
from collections import Counter
from types import FrameType

import numpy as np
import onnx

from boardlift_transform.build_test_models import conv_encoder, elu_policy, every_operator
from boardlift_transform.mutate_model import mutate_bytes, mutate_graph
from boardlift_transform.refusal import Refusal
from boardlift_transform.transform_model import transform

LIMIT_S = 20


def _expire(number: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"no end within {LIMIT_S} s of processor time")


def fuzz(count: int, seed: int, first: int = 0) -> Counter[str]:
    """Run `count` damaged models; raises at the first one that ends badly."""
    bases: list[onnx.ModelProto] = [
        elu_policy((9, 8, 7), 3),
        conv_encoder(),
        every_operator(),
        elu_policy((5, 300), 2, 11),
    ]
    outcomes: Counter[str] = Counter()
    signal.signal(signal.SIGPROF, _expire)
    for index in range(first, count):
        rng = np.random.default_rng([seed, index])
        base = bases[index % len(bases)]
        damaged = (
            mutate_graph(base, rng).SerializeToString() if index % 3 else mutate_bytes(base.SerializeToString(), rng)
        )
        print(f"at {index}", file=sys.stderr, flush=True)
        signal.setitimer(signal.ITIMER_PROF, LIMIT_S)
        try:
            transform(damaged)
            outcomes["equal"] += 1
        except Refusal as refusal:
            outcomes[refusal.reason] += 1
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    return outcomes


def main() -> None:
    """See the module."""
    count, seed = int(sys.argv[1]), int(sys.argv[2])
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    start = time.monotonic()
    try:
        outcomes = fuzz(count, seed, first)
    except Exception:  # noqa: BLE001 - the outermost boundary: anything but a Refusal is the finding
        traceback.print_exc()
        sys.exit(1)
    print(json.dumps({"seconds": round(time.monotonic() - start, 1), **dict(outcomes.most_common())}))


if __name__ == "__main__":
    main()
