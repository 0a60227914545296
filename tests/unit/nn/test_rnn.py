"""Recurrent layers and cells, and packed sequences."""

import numpy as np
import ptr as torch
import pytest
from ptr import nn
from ptr.nn.utils import rnn as rnn_utils


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def reference_step(mode, x, h, c, w):
    """One step in float64."""
    gates_x, gates_h = x @ w[0].T + w[2], h @ w[1].T + w[3]
    if mode == "RNN":
        return np.tanh(gates_x + gates_h), None
    if mode == "GRU":
        (xr, xz, xn), (hr, hz, hn) = np.split(gates_x, 3, -1), np.split(gates_h, 3, -1)
        new, update = np.tanh(xn + sigmoid(xr + hr) * hn), sigmoid(xz + hz)
        return (1 - update) * new + update * h, None
    i, f, g, o = np.split(gates_x + gates_h, 4, -1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def reference(module, mode, x):
    """Every sequence by itself: outputs, and the states of each layer and direction."""
    weights = [[p.detach().numpy() for p in group] for group in module.all_weights]
    directions = 2 if module.bidirectional else 1
    states = []
    for layer in range(module.num_layers):
        outputs = []
        for direction in range(directions):
            h = c = np.zeros(module.hidden_size)
            steps = []
            for element in x[::-1] if direction else x:
                h, c = reference_step(mode, element, h, c, weights[layer * directions + direction])
                steps.append(h)
            outputs.append(steps[::-1] if direction else steps)
            states.append((h, c))
        x = np.concatenate([np.stack(o) for o in outputs], -1)
    return x, states


@pytest.mark.parametrize("mode", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("hidden", [1, 5, 33])
def test_layers_agree_with_a_reference(mode, bidirectional, dtype, hidden):
    torch.manual_seed(0)
    module = getattr(nn, mode)(3, hidden, 2, bidirectional=bidirectional, dtype=dtype)
    x = torch.randn(6, 4, 3, dtype=dtype)
    lengths = [6, 4, 4, 1]
    tolerance = {"rtol": 1e-4, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 1e-10, "atol": 1e-12}
    output, state = module(x)
    packed, packed_state = module(rnn_utils.pack_padded_sequence(x, lengths))
    padded, found = rnn_utils.pad_packed_sequence(packed)
    assert found.tolist() == lengths
    state = state if mode == "LSTM" else (state,)
    packed_state = packed_state if mode == "LSTM" else (packed_state,)
    for b in range(4):
        want, want_states = reference(module, mode, x[:, b].numpy())
        np.testing.assert_allclose(output[:, b].detach().numpy(), want, **tolerance)
        for k, part in enumerate(state):
            np.testing.assert_allclose(part[:, b].detach().numpy(), [s[k] for s in want_states], **tolerance)
        want, want_states = reference(module, mode, x[: lengths[b], b].numpy())
        np.testing.assert_allclose(padded[: lengths[b], b].detach().numpy(), want, **tolerance)
        assert (padded[lengths[b] :, b] == 0).all()
        for k, part in enumerate(packed_state):
            np.testing.assert_allclose(part[:, b].detach().numpy(), [s[k] for s in want_states], **tolerance)


@pytest.mark.parametrize("mode", ["RNN", "GRU", "LSTM"])
def test_gradients(mode):
    torch.manual_seed(0)
    module = getattr(nn, mode)(3, 4, 2, bidirectional=True, dtype=torch.float64)
    x = torch.randn(4, 2, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, *_: module(x)[0], (x, *module.parameters()))
    assert torch.autograd.gradgradcheck(lambda x: module(x)[0], (x,))

    def packed(x):
        return rnn_utils.pad_packed_sequence(module(rnn_utils.pack_padded_sequence(x, [4, 2]))[0])[0]

    assert torch.autograd.gradcheck(packed, (x,))


@pytest.mark.parametrize("mode", ["RNN", "GRU", "LSTM"])
def test_gradients_of_states(mode):
    torch.manual_seed(0)
    module = getattr(nn, mode)(3, 4, 1, dtype=torch.float64)
    states = tuple(
        torch.randn(1, 2, 4, dtype=torch.float64, requires_grad=True) for _ in range(2 if mode == "LSTM" else 1)
    )
    x = torch.randn(3, 2, 3, dtype=torch.float64)

    def last(*states):
        output, state = module(x, states if mode == "LSTM" else states[0])
        return (output, *state) if mode == "LSTM" else (output, state)

    assert torch.autograd.gradcheck(last, states)
    assert torch.autograd.gradgradcheck(last, states)


def test_projection_and_shapes():
    module = nn.LSTM(3, 5, 2, batch_first=True, bidirectional=True, proj_size=2, bias=False)
    output, (h, c) = module(torch.randn(4, 6, 3))
    assert output.shape == (4, 6, 4)
    assert h.shape == (4, 4, 2)
    assert c.shape == (4, 4, 5)
    output, (h, c) = module(torch.randn(6, 3))
    assert output.shape == (6, 4)
    assert c.shape == (4, 5)


def test_a_layer_is_its_cell_step_by_step():
    torch.manual_seed(0)
    layer, cell = nn.LSTM(3, 4), nn.LSTMCell(3, 4)
    cell.load_state_dict({name.removesuffix("_l0"): p for name, p in layer.state_dict().items()})
    x = torch.randn(5, 2, 3)
    state = None
    for t in range(5):
        state = cell(x[t], state)
    torch.testing.assert_close(layer(x)[1][1][0], state[1])


def test_dropout_is_between_layers():
    module = nn.GRU(3, 4, 2, dropout=1.0)
    inner = module(torch.randn(5, 2, 3))[0]
    silent = module(torch.randn(5, 2, 3))[0]
    torch.testing.assert_close(inner, silent)
    assert not torch.equal(module.eval()(torch.randn(5, 2, 3))[0], silent)


def test_packing_round_trip():
    sequences = [torch.arange(float(n)) for n in (2, 5, 1)]
    packed = rnn_utils.pack_sequence(sequences, enforce_sorted=False)
    assert packed.data.tolist() == [0, 0, 0, 1, 1, 2, 3, 4]
    assert packed.batch_sizes.tolist() == [3, 2, 1, 1, 1]
    for got, want in zip(rnn_utils.unpack_sequence(packed), sequences, strict=True):
        assert torch.equal(got, want)
    padded, lengths = rnn_utils.pad_packed_sequence(packed, True, padding_value=-1, total_length=6)
    assert padded.tolist()[0] == [0, 1, -1, -1, -1, -1]
    assert lengths.tolist() == [2, 5, 1]


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ([2, 5], "must be sorted in decreasing order"),
        ([5], r"Expected `len\(lengths\)` to be equal to batch_size"),
        ([5, 0], "Length of all samples has to be greater than 0"),
        ([6, 1], "expected lengths of at most 5"),
    ],
)
def test_packing_refuses(lengths, message):
    with pytest.raises(RuntimeError, match=message):
        rnn_utils.pack_padded_sequence(torch.ones(5, 2, 3), lengths)


def test_packed_sequences_that_do_not_fit_are_refused():
    module = nn.GRU(3, 4)
    for sizes in ([3], [1, 2], [2, 0], []):
        with pytest.raises((RuntimeError, IndexError)):
            module(rnn_utils.PackedSequence(torch.ones(2, 3), torch.tensor(sizes, dtype=torch.int64)))


def test_errors():
    module = nn.LSTM(3, 4, 2)
    with pytest.raises(RuntimeError, match="Expected 3, got 4"):
        module(torch.ones(5, 2, 4))
    with pytest.raises(RuntimeError, match="Expected sequence length to be larger than 0 in RNN"):
        module(torch.ones(0, 2, 3))
    with pytest.raises(RuntimeError, match=r"Expected hidden\[0\] size"):
        module(torch.ones(5, 2, 3), (torch.ones(2, 3, 4), torch.ones(2, 2, 4)))
    with pytest.raises(ValueError, match="does not match weight dtype"):
        module(torch.ones(5, 2, 3).double())
    with pytest.raises(RuntimeError, match="incorrect number of RNN parameters"):
        torch.gru(torch.ones(5, 2, 3), torch.ones(1, 2, 4), [torch.ones(12, 3)], True, 1, 0.0, False, False, False)
    with pytest.raises(RuntimeError, match="lstm expects two hidden states"):
        torch.lstm(torch.ones(5, 2, 3), [torch.ones(1, 2, 4)], [], True, 1, 0.0, False, False, False)
    with pytest.raises(RuntimeError, match="inconsistent input_size: got 4 expected 3"):
        nn.GRUCell(3, 4)(torch.ones(2, 4))
