"""`ctc_loss` against the sum over all paths."""

import itertools
import math

import ptr as torch
import ptr.nn.functional as F
import pytest
from ptr import nn


def spelled(path, blank):
    return [c for c, _ in itertools.groupby(path) if c != blank]


def loss_by_paths(scores, labels, blank):
    steps, classes = scores.shape
    table = scores.tolist()
    total = 0.0
    for path in itertools.product(range(classes), repeat=steps):
        if spelled(path, blank) == labels:
            total += math.exp(sum(table[t][c] for t, c in enumerate(path)))
    return -math.log(total) if total else math.inf


@pytest.mark.parametrize("concatenated", [False, True])
@pytest.mark.parametrize("blank", [0, 2])
def test_losses_by_paths(blank, concatenated):
    torch.manual_seed(0)
    scores = torch.randn(5, 3, 4, dtype=torch.double).log_softmax(2)
    labels = [[1, 3], [3, 3, 1], []]
    inputs = [5, 4, 3]
    if concatenated:
        targets = torch.tensor([c for row in labels for c in row])
    else:
        targets = torch.tensor([row + [1] * (4 - len(row)) for row in labels], dtype=torch.int32)
    lengths = [len(row) for row in labels]
    expected = [loss_by_paths(scores[:n, i], labels[i], blank) for i, n in enumerate(inputs)]
    losses = F.ctc_loss(scores, targets, inputs, lengths, blank=blank, reduction="none")
    torch.testing.assert_close(losses, torch.tensor(expected, dtype=torch.double))
    tensors = torch.tensor(inputs), torch.tensor(lengths, dtype=torch.int32)
    mean = sum(loss / max(n, 1) for loss, n in zip(expected, lengths, strict=True)) / 3
    assert F.ctc_loss(scores, targets, *tensors, blank=blank).item() == pytest.approx(mean)
    total = nn.CTCLoss(blank, reduction="sum")(scores, targets, *tensors)
    assert total.item() == pytest.approx(sum(expected))
    alone = F.ctc_loss(scores[:, 0], torch.tensor(labels[0]), (5,), (2,), blank=blank, reduction="none")
    assert alone.item() == pytest.approx(expected[0])


def test_gradients():
    torch.manual_seed(0)
    x = torch.randn(6, 2, 4, dtype=torch.double, requires_grad=True)
    targets = torch.tensor([[1, 2, 2], [3, 1, 0]])

    def loss(x):
        return F.ctc_loss(x.log_softmax(2), targets, (6, 5), (3, 2), reduction="none")

    assert torch.autograd.gradcheck(loss, (x,))


def test_targets_that_do_not_fit():
    x = torch.randn(3, 2, 4).log_softmax(2).requires_grad_()
    targets = torch.tensor([[1, 1, 1], [1, 2, 3]])
    losses = F.ctc_loss(x, targets, (3, 3), (3, 3), reduction="none", zero_infinity=True)
    assert losses[0] == 0 and losses[1].isfinite()
    losses.sum().backward()
    assert x.grad[:, 0].count_nonzero() == 0 and x.grad[:, 1].isfinite().all()
    assert F.ctc_loss(x, targets, (3, 3), (3, 3), reduction="none")[0] == math.inf


@pytest.mark.parametrize(
    ("error", "message", "change"),
    [
        (RuntimeError, "input_lengths to have value at most 4, but got value 5", {"inputs": (5, 4)}),
        (RuntimeError, "input_lengths to have value at least 0", {"inputs": (4, -1)}),
        (RuntimeError, "size at least 4 at dimension 1", {"lengths": (4, 1)}),
        (RuntimeError, "target_lengths to have value at least 0", {"lengths": (2, -(2**63))}),
        (RuntimeError, "input_lengths must be of size batch_size", {"inputs": (4,)}),
        (RuntimeError, "target_lengths must be of size batch_size", {"lengths": ()}),
        (RuntimeError, "blank must be in label range", {"blank": 5}),
        (RuntimeError, "size 3 at dimension 0, but got size 6", {"targets": torch.ones(6, dtype=torch.long)}),
        (RuntimeError, "1 to 2 dimensions", {"targets": torch.ones(1, 2, 3, dtype=torch.long)}),
        (RuntimeError, "scalar type Int", {"targets": torch.ones(2, 3)}),
        (IndexError, "Target 9 is out of bounds", {"targets": torch.full((2, 3), 9)}),
        (RuntimeError, "must not be empty", {"scores": torch.ones(0, 2, 5)}),
        (NotImplementedError, "not implemented for 'Half'", {"scores": torch.ones(4, 2, 5, dtype=torch.half)}),
    ],
)
def test_errors(error, message, change):
    arguments = {
        "scores": torch.zeros(4, 2, 5),
        "targets": torch.ones(2, 3, dtype=torch.long),
        "inputs": (4, 4),
        "lengths": (2, 1),
        "blank": 0,
    }
    arguments |= change
    with pytest.raises(error, match=message):
        F.ctc_loss(
            arguments["scores"],
            arguments["targets"],
            arguments["inputs"],
            arguments["lengths"],
            arguments["blank"],
        )
