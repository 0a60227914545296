"""Train a small language model, character by character, on the sources of Python's standard library.

A decoder-only transformer (Radford et al., *Language Models are Unsupervised Multitask Learners*, 2019) of four layers,
256 wide, reads 128 characters and predicts the next one at each place. The text are the modules of the interpreter that
runs the script, so nothing is downloaded. The script draws the loss curve and prints a sample.

    python examples/char_gpt.py --steps 300 --out out

Exit status 1 means that the loss of the last steps is not below 2.0 (nats per character).
"""

from __future__ import annotations

import argparse
import sys
import sysconfig
import time
from pathlib import Path

import matplotlib
import numpy as np
import ptr as torch
from ptr import nn
from ptr.nn import functional as F
from tqdm import tqdm

matplotlib.use("Agg")
import matplotlib.pyplot as plt

REQUIRED_LOSS = 2.0
CONTEXT = 128


class Block(nn.Module):
    """Causal self-attention and a feed-forward network, each behind a layer norm and around which the input passes."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        attended = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


class CharGPT(nn.Module):
    """(N, T) characters, T up to ``CONTEXT``, to (N, T, vocabulary) scores of the characters that follow."""

    def __init__(self, vocabulary: int, width: int = 256, layers: int = 4, heads: int = 8) -> None:
        super().__init__()
        self.characters = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(CONTEXT, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)
                if getattr(module, "bias", None) is not None:
                    nn.init.zeros_(module.bias)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        places = torch.arange(text.shape[1])
        return self.head(self.norm(self.blocks(self.characters(text) + self.places(places))))


def library_text(characters: int) -> str:
    """The beginning of the standard library's sources, modules in alphabetical order; ASCII only."""
    parts: list[str] = []
    length = 0
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        parts.append(path.read_text(encoding="utf-8", errors="ignore").encode("ascii", "ignore").decode())
        length += len(parts[-1])
        if length >= characters:
            break
    return "".join(parts)[:characters]


def train(model: nn.Module, data: torch.Tensor, steps: int, batch: int) -> list[float]:
    """Losses of all steps."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1)
    warmup = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=20)
    decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(1, steps - 20), eta_min=1e-4)
    schedule = torch.optim.lr_scheduler.SequentialLR(optimizer, [warmup, decay], milestones=[20])
    losses: list[float] = []
    places = torch.arange(CONTEXT + 1)
    progress = tqdm(range(steps), desc="training", unit="step")
    for _ in progress:
        window = data[torch.randint(len(data) - CONTEXT, (batch, 1)) + places]
        scores = model(window[:, :-1])
        loss = F.cross_entropy(scores.flatten(0, 1), window[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        progress.set_postfix(loss=f"{np.mean(losses[-20:]):.3f}")
    return losses


def sample(model: nn.Module, prompt: torch.Tensor, length: int) -> torch.Tensor:
    """``prompt`` and ``length`` characters that the model draws."""
    text = prompt.unsqueeze(0)
    model.eval()
    with torch.no_grad():
        for _ in range(length):
            probabilities = (model(text[:, -CONTEXT:])[:, -1] / 0.8).softmax(-1)
            # A uniform number falls into each character's part of the unit interval with the character's probability.
            drawn = (probabilities.cumsum(-1) < torch.rand(1, 1)).sum(-1, keepdim=True)
            text = torch.cat([text, drawn.clamp(max=probabilities.shape[-1] - 1)], 1)
    return text[0]


def draw(losses: list[float], path: Path) -> None:
    """The loss curve, with the required loss as a line."""
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    axes.plot(losses, linewidth=0.8)
    axes.axhline(REQUIRED_LOSS, color="gray", linewidth=0.8, linestyle="--")
    axes.set(xlabel="step", ylabel="nats per character", title="Training loss")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--characters", type=int, default=1_000_000, help="how much text")
    parser.add_argument("--sample", type=int, default=300, help="characters to draw in the end")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=None, help="default: all cores")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the picture")
    options = parser.parse_args()
    if options.threads is not None:
        torch.set_num_threads(options.threads)

    text = library_text(options.characters)
    vocabulary = sorted(set(text))
    number = {character: i for i, character in enumerate(vocabulary)}
    data = torch.tensor([number[character] for character in text])

    torch.manual_seed(options.seed)
    model = CharGPT(len(vocabulary))
    start = time.perf_counter()
    losses = train(model, data, options.steps, options.batch)
    seconds = time.perf_counter() - start
    drawn = sample(model, torch.tensor([number[character] for character in "def "]), options.sample)

    options.out.mkdir(parents=True, exist_ok=True)
    picture = options.out / "char_gpt.png"
    draw(losses, picture)
    reached = float(np.mean(losses[-20:]))
    print("".join(vocabulary[i] for i in drawn.tolist()))
    print(f"loss {reached:.3f} after {len(losses)} steps in {seconds:.0f} s; picture in {picture}")
    return 0 if reached < REQUIRED_LOSS else 1


if __name__ == "__main__":
    sys.exit(main())
