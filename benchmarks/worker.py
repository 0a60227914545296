"""Runs cases of one module on demand: reads `name calls` lines, answers seconds per call."""

from __future__ import annotations

import importlib
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.cases import CASES


def main() -> None:
    module = importlib.import_module(sys.argv[1])
    module.set_num_threads(int(sys.argv[2]))
    built = {}
    for line in sys.stdin:
        name, calls = line.split()
        if name not in built:
            built[name] = CASES[name](module)
            built[name]()
        run = built[name]
        start = time.process_time()
        for _ in range(int(calls)):
            run()
        print((time.process_time() - start) / int(calls), flush=True)


if __name__ == "__main__":
    main()
