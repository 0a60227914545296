"""Operators that get tensors of the CPU and of the Meta device, whose results are not computed."""

import ptr as torch
import pytest

M = torch.ones(2, 3, device="meta")
X = torch.ones(2, 3)
INDEX = torch.tensor([0, 1])
NUMBER = torch.tensor(2.0)


@pytest.mark.parametrize(
    ("call", "shape"),
    [
        (lambda: M + NUMBER, (2, 3)),
        (lambda: NUMBER * M, (2, 3)),
        (lambda: torch.where(M > 0, NUMBER, torch.tensor(1.0)), (2, 3)),
        (lambda: torch.where(M > 0, NUMBER, 1.0), (2, 3)),
        (lambda: torch.addcdiv(M, NUMBER, NUMBER), (2, 3)),
        (lambda: M.clone().add_(NUMBER), (2, 3)),
        (lambda: M.clone().copy_(X), (2, 3)),
        (lambda: M.clone().fill_(NUMBER), (2, 3)),
        (lambda: torch.mm(M, X.t()), (2, 2)),
        (lambda: torch.addmm(torch.ones(2, 2, device="meta"), M, X.t()), (2, 2)),
        (lambda: torch.nn.functional.linear(M, X), (2, 2)),
        (lambda: M[INDEX], (2, 3)),
        (lambda: M.index_put((INDEX.to("meta"),), torch.ones(3)), (2, 3)),
        (lambda: M.clone().masked_fill_(X > 0, 1.0), (2, 3)),
        (lambda: M.index_select(0, INDEX), (2, 3)),
        (lambda: M.gather(0, INDEX[None]), (1, 2)),
        (lambda: M.scatter(0, INDEX[None], 1.0), (2, 3)),
        (lambda: M.scatter(0, INDEX[None].to("meta"), X), (2, 3)),
        (lambda: M.scatter_add(0, INDEX[None].to("meta"), X), (2, 3)),
    ],
)
def test_what_is_not_computed_takes_tensors_from_elsewhere(call, shape):
    result = call()
    assert result.is_meta and result.shape == shape


@pytest.mark.parametrize(
    "call",
    [
        lambda: M + X,
        lambda: torch.where(M > 0, X, M),
        lambda: torch.cat([M, X]),
        lambda: torch.stack([X, M]),
        lambda: torch.dot(M[0], X[0]),
        lambda: M.index_add(0, INDEX, M),
        lambda: torch.add(M, M, out=X.clone()),
        # PyTorch returns tensors on the CPU here that nobody has computed.
        lambda: torch.mm(X, M.t()),
        lambda: X.gather(0, INDEX[None].to("meta")),
        lambda: X.clone().add_(M),
        lambda: X.clone().masked_fill_(M > 0, 1.0),
        lambda: X.index_put((INDEX,), M[0]),
        lambda: X.clone().fill_(NUMBER.to("meta")),
        lambda: X[INDEX.to("meta")],
    ],
)
def test_nothing_is_computed_from_what_has_no_data(call):
    with pytest.raises(RuntimeError, match="device|Cannot copy out of meta tensor"):
        call()
