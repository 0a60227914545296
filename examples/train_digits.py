"""Train a small convolutional network on real handwritten digits.

The data are the 1,797 images of 8x8 pixels that scikit-learn ships (E. Alpaydin and C. Kaynak, *Optical Recognition
of Handwritten Digits*, UCI, 1998). A fifth is held out. The script trains, saves the weights, reads them back in a
new process, and draws the loss curve and the misread digits.

    python examples/train_digits.py --epochs 12 --out out

Exit status 1 means that the accuracy is below 97 % or that the saved weights do not give the same answer.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

import matplotlib
import numpy as np
import ptr as torch
from ptr import nn
from ptr.utils.data import DataLoader, TensorDataset
from sklearn.datasets import load_digits
from tqdm import tqdm

matplotlib.use("Agg")
import matplotlib.pyplot as plt

REQUIRED_ACCURACY = 0.97


class Net(nn.Module):
    """Two convolutions and a linear layer: (N, 1, 8, 8) images to (N, 10) scores."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
        )
        self.head = nn.Sequential(nn.Dropout(0.25), nn.Linear(32 * 4 * 4, 10))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(images))


def digits() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Training images and labels, then the held-out fifth. Pixels are scaled to [0, 1]."""
    data = load_digits()
    images = torch.from_numpy((data.images / 16.0).astype(np.float32)).unsqueeze(1)
    labels = torch.from_numpy(data.target.astype(np.int64))
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    held_out = len(labels) // 5
    test, train = order[:held_out], order[held_out:]
    return images[train], labels[train], images[test], labels[test]


def predict(model: nn.Module, images: torch.Tensor) -> torch.Tensor:
    model.eval()
    with torch.no_grad():
        return model(images).argmax(dim=1)


def accuracy(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> float:
    return (predict(model, images) == labels).sum().item() / len(labels)


def train(model: nn.Module, images: torch.Tensor, labels: torch.Tensor, epochs: int) -> list[float]:
    """Losses of all steps."""
    loader = DataLoader(TensorDataset(images, labels), batch_size=32, shuffle=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    losses: list[float] = []
    progress = tqdm(range(epochs), desc="training", unit="epoch")
    for _ in progress:
        model.train()
        for batch, target in loader:
            optimizer.zero_grad()
            loss = criterion(model(batch), target)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        progress.set_postfix(loss=f"{np.mean(losses[-len(loader) :]):.4f}")
    return losses


def draw(losses: list[float], images: torch.Tensor, labels: torch.Tensor, predicted: torch.Tensor, path: Path) -> None:
    """The loss curve above, and up to ten misread digits below."""
    wrong = (predicted != labels).nonzero().flatten().tolist()[:10]
    figure = plt.figure(figsize=(9, 5), layout="constrained")
    grid = figure.add_gridspec(2, 10, height_ratios=[3, 1])
    curve = figure.add_subplot(grid[0, :])
    curve.plot(losses, linewidth=0.8)
    curve.set(xlabel="step", ylabel="cross entropy", yscale="log", title="Training loss")
    for column, i in enumerate(wrong):
        cell = figure.add_subplot(grid[1, column])
        cell.imshow(images[i, 0].numpy(), cmap="gray_r")
        cell.set_title(f"{labels[i].item()} read as {predicted[i].item()}", fontsize=7)
        cell.axis("off")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=None, help="default: all cores")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for weights and picture")
    parser.add_argument("--losses", type=Path, default=None, help="write the exact losses here, one hex float a line")
    parser.add_argument("--evaluate", type=Path, default=None, help="only load these weights and print the accuracy")
    options = parser.parse_args()
    if options.threads is not None:
        torch.set_num_threads(options.threads)

    train_images, train_labels, test_images, test_labels = digits()
    if options.evaluate is not None:
        model = Net()
        model.load_state_dict(torch.load(options.evaluate))
        print(accuracy(model, test_images, test_labels))
        return 0

    torch.manual_seed(options.seed)
    model = Net()
    start = time.perf_counter()
    losses = train(model, train_images, train_labels, options.epochs)
    seconds = time.perf_counter() - start
    if options.losses is not None:
        options.losses.write_text("".join(f"{loss.hex()}\n" for loss in losses))

    options.out.mkdir(parents=True, exist_ok=True)
    predicted = predict(model, test_images)
    reached = accuracy(model, test_images, test_labels)
    picture, weights = options.out / "digits.png", options.out / "digits.pt"
    draw(losses, test_images, test_labels, predicted, picture)
    torch.save(model.state_dict(), weights)
    again = subprocess.run(
        [sys.executable, __file__, "--evaluate", str(weights)], check=True, capture_output=True, text=True
    )
    same = float(again.stdout) == reached
    print(f"test accuracy {reached:.2%} after {len(losses)} steps in {seconds:.1f} s; picture in {picture}")
    print(f"weights saved to {weights}; read in a new process they give {'the same' if same else 'ANOTHER'} accuracy")
    return 0 if same and reached >= REQUIRED_ACCURACY else 1


if __name__ == "__main__":
    sys.exit(main())
