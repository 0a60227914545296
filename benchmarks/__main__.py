"""Times the cases of benchmarks/cases.py, alone or beside PyTorch: see benchmarks/README.md."""

from __future__ import annotations

import argparse
import fnmatch
import math
import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks.cases import CASES

WORKER = Path(__file__).with_name("worker.py")


class Worker:
    """A process that has imported one module."""

    def __init__(self, python: str, module: str, threads: int) -> None:
        self.process = subprocess.Popen(
            [python, str(WORKER), module, str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def seconds(self, name: str, calls: int) -> float:
        """CPU seconds per call."""
        assert self.process.stdin is not None and self.process.stdout is not None
        print(name, calls, file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())


def calls_for(worker: Worker, name: str, target: float) -> int:
    """How many calls take about `target` seconds."""
    return max(1, math.ceil(target / max(worker.seconds(name, 10), 1e-8)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer-python", help="the Python of an environment that has torch")
    parser.add_argument("--cases", default="*", help="glob over names")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--target", type=float, default=0.05, help="seconds a round takes")
    options = parser.parse_args()
    ours = Worker(sys.executable, "ptr", options.threads)
    peer = Worker(options.peer_python, "torch", options.threads) if options.peer_python else None
    for name in fnmatch.filter(CASES, options.cases):
        calls = calls_for(ours, name, options.target)
        mine, ratios = [], []
        for _ in range(options.rounds):
            mine.append(ours.seconds(name, calls))
            if peer is not None:
                ratios.append(mine[-1] / peer.seconds(name, calls))
        ratio = f"  ratio {statistics.median(ratios):.3f}" if ratios else ""
        print(f"{name:32} {min(mine) * 1e9:14,.0f} ns{ratio}")


if __name__ == "__main__":
    main()
