"""Every optimizer: the steps of PyTorch, the same for all forms, states, and what is refused."""

import copy

import ptr as torch
import pytest
from ptr import nn, optim

SHAPES = [(3, 4), (5,), (), (2, 3, 2, 33)]

# A parameter after each of three steps of PyTorch 2.13 in float64, from 1.5 along these gradients.
GRADS = (0.3, -1.25, 2.0)
RECORDED = [
    ("Adadelta", {}, [1.496837898007285, 1.5011983024418853, 1.4959304440760899]),
    (
        "Adadelta",
        {"lr": 0.5, "rho": 0.8, "weight_decay": 0.1, "maximize": True},
        [1.5011179097834517, 1.4995440699258278, 1.501341895825091],
    ),
    ("Adagrad", {}, [1.4900000000033333, 1.499723873022382, 1.4913116706853853]),
    (
        "Adagrad",
        {"lr": 0.1, "lr_decay": 0.5, "weight_decay": 0.1, "initial_accumulator_value": 0.2, "eps": 1e-05},
        [1.4290711814332813, 1.486912950737784, 1.4439221965965487],
    ),
    ("Adagrad", {"maximize": True}, [1.5099999999966667, 1.500276126977618, 1.5086883293146147]),
    ("Adam", {}, [1.4990000000333332, 1.499567309407338, 1.4992668660441109]),
    (
        "Adam",
        {"lr": 0.1, "betas": (0.4, 0.9), "eps": 0.001, "weight_decay": 0.1},
        [1.400221729490022, 1.477125456392598, 1.3999379290336282],
    ),
    (
        "Adam",
        {"lr": 0.1, "amsgrad": True, "maximize": True},
        [1.5999999966666667, 1.5432690592661777, 1.5733133955888914],
    ),
    (
        "Adam",
        {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True},
        [1.3850000033333332, 1.4278809407004889, 1.3835577949707702],
    ),
    ("AdamW", {}, [1.4989850000333333, 1.4995373195573378, 1.499221880820915]),
    (
        "AdamW",
        {"lr": 0.1, "betas": (0.4, 0.9), "weight_decay": 0.3, "amsgrad": True},
        [1.3550000033333334, 1.4011345399494533, 1.289313523669353],
    ),
    ("Adamax", {}, [1.4980000000666667, 1.4988252632179593, 1.4984127170945607]),
    (
        "Adamax",
        {"lr": 0.1, "betas": (0.4, 0.9), "eps": 0.1, "weight_decay": 0.1, "maximize": True},
        [1.56, 1.4961601214190856, 1.5392806239492418],
    ),
    ("ASGD", {}, [1.4969985000670887, 1.5094969934771147, 1.4894955142317614]),
    (
        "ASGD",
        {"lr": 0.1, "lambd": 0.1, "alpha": 0.5, "t0": 1, "weight_decay": 0.1},
        [1.4399999991059305, 1.5357225761442492, 1.3072812350332461],
    ),
    ("ASGD", {"maximize": True}, [1.5029984999329784, 1.4904970065282543, 1.5104954857841448]),
    ("NAdam", {}, [1.4978870964877604, 1.4998899790683646, 1.498051222929089]),
    (
        "NAdam",
        {"lr": 0.1, "betas": (0.4, 0.9), "weight_decay": 0.1, "momentum_decay": 0.1, "maximize": True},
        [1.6126080602519937, 1.4824133295150015, 1.6010235628063882],
    ),
    (
        "NAdam",
        {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True},
        [1.3793548243880265, 1.4657054051743597, 1.3591105441588376],
    ),
    ("RAdam", {}, [1.4997, 1.5002157894736843, 1.4998032433482231]),
    ("RAdam", {"lr": 0.1, "betas": (0.4, 0.6), "weight_decay": 0.1}, [1.455, 1.5210357142857143, 1.4067854853479853]),
    (
        "RAdam",
        {"lr": 0.1, "betas": (0.4, 0.9), "weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True},
        [1.515, 1.4191357142857142, 1.5041751263736263],
    ),
    ("RMSprop", {}, [1.4000000333333222, 1.4972652463172011, 1.413013331454436]),
    (
        "RMSprop",
        {"lr": 0.1, "alpha": 0.5, "momentum": 0.9, "weight_decay": 0.1},
        [1.3585786482071347, 1.3672835854547596, 1.2430713122911585],
    ),
    (
        "RMSprop",
        {"lr": 0.1, "centered": True, "momentum": 0.5, "maximize": True},
        [2.5050374785589877, 2.0322187182194686, 2.6391642029268887],
    ),
    ("Rprop", {}, [1.49, 1.49, 1.485]),
    (
        "Rprop",
        {"lr": 0.1, "etas": (0.3, 1.5), "step_sizes": (0.05, 0.12), "maximize": True},
        [1.6, 1.6, 1.6500000000000001],
    ),
    ("Adafactor", {}, [1.485, 1.4998500000000001, 1.4848515000000002]),
    (
        "Adafactor",
        {"lr": 0.1, "beta2_decay": -0.3, "eps": (0.1, 0.2), "d": 2.0, "weight_decay": 0.1, "maximize": True},
        [1.6349999999999998, 1.4384311340916196, 1.583922271552448],
    ),
    ("SGD", {}, [1.4997, 1.50095, 1.49895]),
    (
        "SGD",
        {"lr": 0.1, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.1, "maximize": True},
        [1.515, 1.4023649999999999, 1.4683722149999998],
    ),
]
NAMES = sorted({name for name, _, _ in RECORDED})
FUSED = ("Adam", "AdamW", "Adagrad", "SGD")
CAPTURABLE = ("Adadelta", "Adam", "AdamW", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop")


def forms(name):
    return [{}, {"foreach": False}, {"foreach": True}, *([{"fused": True}] if name in FUSED else [])]


def case_id(value):
    return value if isinstance(value, str) else ""


@pytest.mark.parametrize(("name", "options", "expected"), RECORDED, ids=case_id)
def test_steps_are_those_of_pytorch(name, options, expected):
    for form in forms(name):
        p = nn.Parameter(torch.tensor([1.5], dtype=torch.float64))
        opt = getattr(optim, name)([p], **options, **form)
        for g, value in zip(GRADS, expected, strict=True):
            p.grad = torch.tensor([g], dtype=torch.float64)
            opt.step()
            # The step counter's neighbours (`eta`, `mu`) are float32.
            assert p.item() == pytest.approx(value, rel=1e-7 if name == "ASGD" else 1e-12), form


def run(name, options, dtype, steps=4):
    torch.manual_seed(0)
    params = [nn.Parameter(torch.randn(shape).to(dtype)) for shape in SHAPES]
    # One that is not contiguous.
    params.append(nn.Parameter(torch.randn(4, 6).to(dtype).t()))
    opt = getattr(optim, name)(params, **options)
    for _ in range(steps):
        for p in params:
            # Not near zero: squares of small ones are nothing in half precision.
            grad = torch.randn(p.shape)
            p.grad = (grad + 0.5 * grad.sign()).to(dtype)
        opt.step()
    return [p.detach() for p in params]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.bfloat16, torch.half], ids=str)
@pytest.mark.parametrize(("name", "options", "_"), RECORDED, ids=case_id)
def test_all_forms_agree(name, options, _, dtype):
    if name == "Adafactor" and dtype.is_complex:
        pytest.skip("real parameters only")
    expected = run(name, {**options, "foreach": False}, dtype)
    tolerance = {torch.float64: 1e-12, torch.bfloat16: 5e-2, torch.half: 5e-3}.get(dtype, 1e-5)
    for form in forms(name):
        if "fused" in form and dtype.is_complex:
            continue
        for value, reference in zip(run(name, {**options, **form}, dtype), expected, strict=True):
            assert torch.allclose(value, reference, rtol=tolerance, atol=tolerance), form


@pytest.mark.parametrize("name", FUSED)
def test_fused_steps_have_the_same_bits_for_any_number_of_threads(name):
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            torch.manual_seed(0)
            p = nn.Parameter(torch.randn(100_003))
            opt = getattr(optim, name)([p], lr=0.1, weight_decay=0.1, fused=True)
            for _ in range(2):
                p.grad = torch.randn(100_003)
                opt.step()
            results.append(p.detach())
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(result, results[0]) for result in results)


@pytest.mark.parametrize("name", NAMES)
def test_state_dict_goes_on_where_it_was_saved(name):
    def fresh():
        torch.manual_seed(1)
        params = [nn.Parameter(torch.randn(shape)) for shape in SHAPES]
        return params, getattr(optim, name)(params, **({"momentum": 0.9} if name == "SGD" else {}))

    def step(params, opt, seed):
        torch.manual_seed(seed)
        for p in params:
            p.grad = torch.randn(p.shape)
        opt.step()

    params, opt = fresh()
    step(params, opt, 5)
    others, other = fresh()
    step(others, other, 5)
    saved = copy.deepcopy(other.state_dict())
    again = getattr(optim, name)(others, lr=0.5)
    again.load_state_dict(saved)
    step(params, opt, 6)
    step(others, again, 6)
    assert [p.tolist() for p in params] == [p.tolist() for p in others]
    # Steps were numbers once.
    for state in saved["state"].values():
        for key in ("step", "eta", "mu", "mu_product"):
            if key in state:
                state[key] = state[key].item()
    again.load_state_dict(saved)
    assert all(isinstance(v, torch.Tensor) for state in again.state.values() for v in state.values())


@pytest.mark.parametrize("name", [n for n in NAMES if n != "Adafactor"])
def test_differentiable_steps_have_the_gradient_of_the_formula(name):
    start = torch.tensor([0.5, -1.5], dtype=torch.float64, requires_grad=True)
    grad = torch.tensor([0.3, 0.7], dtype=torch.float64, requires_grad=True)

    def after_one_step(start, grad):
        p = start.clone()
        opt = getattr(optim, name)([p], lr=0.1, differentiable=True)
        p.grad = grad.clone()
        opt.step()
        return p

    torch.autograd.gradcheck(after_one_step, (start, grad))


@pytest.mark.parametrize("name", ["Adam", "RMSprop", "Adadelta", "NAdam", "RAdam", "Adamax", "SGD", "ASGD"])
def test_the_learning_rate_may_be_in_the_graph(name):
    lr = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)

    def after_one_step(lr):
        p = torch.tensor([0.5, -1.5], dtype=torch.float64, requires_grad=True).clone()
        opt = getattr(optim, name)([p], lr=lr, differentiable=True, foreach=False)
        p.grad = torch.tensor([0.3, 0.7], dtype=torch.float64)
        opt.step()
        return p

    if name == "ASGD":  # The first step takes the rate from the state, which holds its value.
        assert after_one_step(lr).tolist()
    else:
        torch.autograd.gradcheck(after_one_step, (lr,))


@pytest.mark.parametrize("name", NAMES)
def test_learning_rate_as_a_tensor(name):
    def result(lr, **form):
        p = nn.Parameter(torch.tensor([1.5, -2.0]))
        opt = getattr(optim, name)([p], lr=lr, **form)
        for g in GRADS:
            p.grad = torch.tensor([g, -g])
            opt.step()
        return p.tolist()

    expected = result(0.25)
    for form in ({}, {"foreach": False}, *([{"fused": True}] if name in FUSED else [])):
        for lr in (torch.tensor(0.25), torch.tensor([0.25])):
            assert result(lr, **form) == pytest.approx(expected, rel=1e-6)


def test_mixed_dtypes_and_absent_gradients():
    for name in NAMES:
        p, q, r = (nn.Parameter(torch.ones(2, dtype=d)) for d in (torch.float32, torch.float64, torch.float32))
        opt = getattr(optim, name)([p, q, r], lr=0.5)
        p.grad, q.grad = torch.ones(2), torch.ones(2, dtype=torch.float64)
        opt.step()
        assert p.tolist() == pytest.approx(q.tolist(), rel=1e-5) and r.tolist() == [1.0, 1.0]
        assert p.tolist() != [1.0, 1.0], name


def test_closure_and_grad_mode():
    for name in NAMES:
        p = nn.Parameter(torch.tensor([2.0]))
        opt = getattr(optim, name)([p], lr=0.25)

        def closure(opt=opt, p=p):
            opt.zero_grad()
            loss = (p * p).sum()
            loss.backward()
            return loss

        with torch.no_grad():
            assert opt.step(closure).item() == 4.0
        assert p.item() != 2.0 and torch.is_grad_enabled()


def test_scaled_gradients_and_infinities_of_fused_steps():
    for name in FUSED:
        p = nn.Parameter(torch.tensor([1.0]))
        opt = getattr(optim, name)([p], lr=0.5, fused=True)
        opt.grad_scale, opt.found_inf = torch.tensor(4.0), torch.tensor(1.0)
        p.grad = torch.tensor([8.0])
        opt.step()
        assert p.item() == 1.0 and p.grad.item() == 8.0
        assert name == "SGD" or opt.state[p]["step"].item() == 0.0
        opt.found_inf = torch.tensor(0.0)
        opt.step()
        assert p.item() < 1.0 and p.grad.item() == 2.0
        assert name == "SGD" or opt.state[p]["step"].item() == 1.0
        opt = getattr(optim, name)([p], lr=0.5)
        opt.grad_scale = torch.tensor(4.0)
        with pytest.raises(AssertionError, match="Expected grad_scale and found_inf to be None"):
            opt.step()


def test_betas_may_be_tensors():
    def result(betas, **form):
        p = nn.Parameter(torch.tensor([1.5, -2.0]))
        opt = optim.Adam([p], lr=0.1, betas=betas, **form)
        for g in GRADS:
            p.grad = torch.tensor([g, -g])
            opt.step()
        return p.tolist()

    expected = result((0.5, 0.75))
    for form in ({}, {"foreach": False}, {"fused": True}):
        assert result((torch.tensor(0.5), torch.tensor([0.75])), **form) == pytest.approx(expected, rel=1e-6)


def test_sums_of_adagrad_are_there_before_the_first_step():
    p, z = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2, dtype=torch.complex64))
    opt = optim.Adagrad([p, z], initial_accumulator_value=0.5)
    assert opt.state[p]["sum"].tolist() == [0.5, 0.5] and opt.state[z]["sum"].tolist() == [0.5 + 0.5j] * 2


@pytest.mark.parametrize(
    ("name", "kwargs", "error", "match"),
    [
        *[(name, {"lr": -1}, ValueError, "earning rate") for name in [*NAMES, "LBFGS", "Muon", "SparseAdam"]],
        *[(name, {"lr": torch.ones(2)}, ValueError, "Tensor lr must be 1-element") for name in [*NAMES, "LBFGS"]],
        *[
            (name, {"betas": (0.9, 1.0)}, ValueError, "Invalid beta parameter at index 1: 1.0")
            for name in ("Adam", "AdamW", "Adamax", "NAdam", "RAdam", "SparseAdam")
        ],
        *[
            (name, {"eps": -1}, ValueError, "Invalid epsilon value: -1")
            for name in ("Adadelta", "Adagrad", "Adam", "Adamax", "NAdam", "RAdam", "RMSprop", "SparseAdam")
        ],
        *[(name, {"fused": True, "foreach": True}, RuntimeError, "cannot be `True` together") for name in FUSED],
        *[(name, {"fused": True, "differentiable": True}, RuntimeError, "does not support") for name in FUSED],
        ("Adadelta", {"rho": 1.5}, ValueError, "Invalid rho value"),
        ("Adagrad", {"lr_decay": -1}, ValueError, "Invalid lr_decay value"),
        ("Adagrad", {"initial_accumulator_value": -1}, ValueError, "Invalid initial_accumulator_value value"),
        ("Adam", {"lr": torch.tensor(0.1), "foreach": True}, ValueError, "lr as a Tensor is not supported"),
        ("Adam", {"betas": (0.9, torch.tensor(0.9))}, ValueError, "betas must be either both floats or both"),
        ("Adam", {"betas": (0, 0.9)}, ValueError, "betas must be either both floats or both"),
        ("Adam", {"betas": (torch.ones(()) / 2,) * 2, "foreach": True}, ValueError, r"betas\[0\] as a Tensor"),
        ("NAdam", {"momentum_decay": -1}, ValueError, "Invalid momentum_decay value"),
        ("RMSprop", {"alpha": -1}, ValueError, "Invalid alpha value"),
        ("RMSprop", {"momentum": -1}, ValueError, "Invalid momentum value"),
        ("Rprop", {"etas": (1.0, 1.2)}, ValueError, "Invalid eta values: 1.0, 1.2"),
        ("Adafactor", {"beta2_decay": 0.1}, ValueError, "beta2_decay should be <= 0"),
        ("Adafactor", {"eps": (-1, 0.1)}, ValueError, "epsilon1 should be >= 0"),
        ("Adafactor", {"eps": (None, -1)}, ValueError, "epsilon2 should be >= 0"),
        ("Adafactor", {"d": 0.5}, ValueError, "Clipping threshold d should be >= 1"),
        ("Adafactor", {"weight_decay": -1}, ValueError, "weight_decay should be >= 0"),
        ("Muon", {"adjust_lr_fn": "no"}, ValueError, "function no is not supported"),
        ("Muon", {}, ValueError, "Muon only supports 2D parameters"),
        ("SparseAdam", {"lr": 0.0}, ValueError, "Invalid learning rate"),
    ],
)
def test_misuse(name, kwargs, error, match):
    with pytest.raises(error, match=match):
        getattr(optim, name)([nn.Parameter(torch.ones(1))], **kwargs)


def test_steps_that_are_refused():
    p = nn.Parameter(torch.ones(1))
    p.grad = torch.ones(1)
    for name in CAPTURABLE:
        with pytest.raises(AssertionError, match="If capturable=True, params and state_steps must be on supported"):
            getattr(optim, name)([p], capturable=True).step()
    q = p.detach().clone().requires_grad_().clone()
    q.grad = torch.ones(1)
    with pytest.raises(AssertionError, match="_foreach ops don't support autograd"):
        optim.Adam([q], foreach=True, differentiable=True).step()
    z = nn.Parameter(torch.ones(1, dtype=torch.complex64))
    z.grad = torch.ones(1, dtype=torch.complex64)
    for name in FUSED:
        with pytest.raises(RuntimeError, match="floating point Tensors"):
            getattr(optim, name)([z], fused=True).step()
    with pytest.raises(RuntimeError, match="does not support complex"):
        optim.Adafactor([z]).step()
    with pytest.raises(RuntimeError, match="does not support dense gradients"):
        optim.SparseAdam([p]).step()
    with pytest.raises(ValueError, match=r"Complex params at indices \[\[0, 0\]\]"):
        optim.SparseAdam([z])
    with pytest.raises(RuntimeError, match="singleton tensors"):
        optim.adam.adam(
            [p],
            [p],
            [p],
            [p],
            [],
            [1],
            **dict.fromkeys(("amsgrad", "beta1", "beta2", "lr", "weight_decay", "eps", "maximize"), 0.5),
        )


def test_functions_take_lists_by_position_or_name():
    rows = [[torch.ones(2)] for _ in range(4)]
    step = torch.zeros(())
    optim.adadelta.adadelta(
        *rows[:2],
        square_avgs=rows[2],
        acc_deltas=rows[3],
        state_steps=[step],
        has_complex=False,
        lr=0.5,
        rho=0.5,
        eps=0.0,
        weight_decay=0,
        maximize=False,
    )
    assert rows[0][0].tolist() == [0.5, 0.5] and step.item() == 1.0


MATRIX = (torch.arange(6.0).reshape(2, 3) - 2.5) / 4
OF_MATRICES = [
    ("Muon", {}, 2e-3, [-0.6268356442, -0.3758218884, -0.1239839867, 0.1241296679, 0.3759997487, 0.6268044710]),
    (
        "Muon",
        {"lr": 0.1, "nesterov": False, "adjust_lr_fn": "match_rms_adamw", "weight_decay": 0.0},
        2e-3,
        [-0.6988827586, -0.4194514751, -0.0993913561, 0.0833056197, 0.4047019482, 0.6984768510],
    ),
    ("Adafactor", {}, 1e-6, [-0.6360895038, -0.3847911060, -0.1251648813, 0.1297171563, 0.3854833245, 0.6270172596]),
    (
        "Adafactor",
        {"lr": 0.1, "weight_decay": 0.1, "maximize": True},
        1e-6,
        [-0.5079915524, -0.2714580297, -0.1133811101, 0.0853643045, 0.2659988701, 0.5817732215],
    ),
]


@pytest.mark.parametrize(("name", "options", "tolerance", "expected"), OF_MATRICES, ids=case_id)
def test_steps_of_matrices_are_those_of_pytorch(name, options, tolerance, expected):
    for form in ({}, {"foreach": True}) if name == "Adafactor" else ({},):
        # Transposed, too: rows and columns change places, and the smaller Gram matrix is the other one.
        for flip in (False, True) if "adjust_lr_fn" in options else (False,):
            start = MATRIX.clone().t().contiguous() if flip else MATRIX.clone()
            p = nn.Parameter(start)
            opt = getattr(optim, name)([p], **options, **form)
            for i in range(3):
                grad = (torch.arange(6.0) + i).sin().reshape(2, 3)
                p.grad = grad.t().contiguous() if flip else grad
                opt.step()
            got = p.detach().t() if flip else p.detach()
            assert got.flatten().tolist() == pytest.approx(expected, abs=tolerance)


ROSENBROCK = [
    ({}, [0.9999998945, 0.9999998088], 36),
    ({"line_search_fn": "strong_wolfe"}, [1.0000018754, 1.0000043811], 27),
    ({"lr": 0.1, "max_iter": 5, "history_size": 2}, [-0.820379071795416, 0.7091533635285919], 15),
    (
        {"line_search_fn": "strong_wolfe", "history_size": 2, "max_iter": 4},
        [0.4779776919012241, 0.13266601480859144],
        16,
    ),
]


@pytest.mark.parametrize(("options", "expected", "evaluations"), ROSENBROCK, ids=str)
def test_lbfgs_goes_the_way_of_pytorch(options, expected, evaluations):
    x = nn.Parameter(torch.tensor([-1.2, 1.0], dtype=torch.float64))
    opt = optim.LBFGS([x], **options)
    count = 0

    def closure():
        nonlocal count
        count += 1
        opt.zero_grad()
        loss = (1 - x[0]) ** 2 + 10 * (x[1] - x[0] ** 2) ** 2
        loss.backward()
        return loss

    for _ in range(3):
        opt.step(closure)
    assert x.tolist() == pytest.approx(expected, rel=1e-7)
    assert count == evaluations == opt.state_dict()["state"][0]["func_evals"]


def test_lbfgs_refuses():
    p, q = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    with pytest.raises(ValueError, match="doesn't support per-parameter options"):
        optim.LBFGS([{"params": [p]}, {"params": [q]}])

    def closure():
        loss = (p * p).sum()
        loss.backward()
        return loss

    with pytest.raises(RuntimeError, match="only 'strong_wolfe' is supported"):
        optim.LBFGS([p], line_search_fn="no").step(closure)
