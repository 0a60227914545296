"""Trains one MLP under `ptr` and under PyTorch from seed 0 and compares the losses.

    .venv/bin/python benchmarks/losses.py --peer-python PATH

Exit status 1 if a loss differs by more than 1e-4 relative. Both draw the same initial weights and the same shuffles,
because the random streams are the same.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys

STEPS = 50
TOLERANCE = 1e-4


def losses(name: str) -> list[float]:
    module = importlib.import_module(name)
    nn = importlib.import_module(name + ".nn")
    data = importlib.import_module(name + ".utils.data")
    module.manual_seed(0)
    points = module.rand(640, 10)
    labels = (points.sum(dim=1) * 2).long() % 4
    model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
    optimizer = module.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    loader = data.DataLoader(data.TensorDataset(points, labels), batch_size=32, shuffle=True)
    result: list[float] = []
    while len(result) < STEPS:
        for batch, target in loader:
            optimizer.zero_grad()
            loss = criterion(model(batch), target)
            loss.backward()
            optimizer.step()
            result.append(loss.item())
            if len(result) == STEPS:
                break
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer-python", help="the Python of an environment that has torch")
    parser.add_argument("--print", dest="module", help="only print the losses of this module, as JSON")
    options = parser.parse_args()
    if options.module is not None:
        print(json.dumps(losses(options.module)))
        return 0
    if options.peer_python is None:
        parser.error("--peer-python is needed")
    run = subprocess.run(
        [options.peer_python, __file__, "--print", "torch"], check=True, capture_output=True, text=True
    )
    theirs, ours = json.loads(run.stdout), losses("ptr")
    worst = max(abs(a - b) / abs(b) for a, b in zip(ours, theirs, strict=True))
    print(f"{STEPS} losses, first {ours[0]:.6f}, last {ours[-1]:.6f}; largest relative difference {worst:.2e}")
    return 0 if worst <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
