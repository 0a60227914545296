"""Learning-rate schedules; the expected values are PyTorch's."""

import copy
import math
import warnings
from collections.abc import Callable
from typing import Any

import ptr as torch
import pytest
from ptr.optim import lr_scheduler


def sgd(*lrs: float, momentum: float = 0.9) -> Any:
    groups = [{"params": [torch.ones(2, requires_grad=True)], "lr": lr} for lr in lrs or (1.0,)]
    return torch.optim.SGD(groups, lr=0.1, momentum=momentum)


def rates(optimizer: Any, scheduler: Any, steps: int) -> list[float]:
    seen = []
    for _ in range(steps):
        seen.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return seen


SCHEDULES: list[tuple[Callable[[Any], Any], list[float]]] = [
    (lambda o: lr_scheduler.StepLR(o, 2, 0.5), [1.0, 1.0, 0.5, 0.5, 0.25, 0.25, 0.125]),
    (lambda o: lr_scheduler.MultiStepLR(o, [2, 2, 4], 0.5), [1.0, 1.0, 0.25, 0.25, 0.125, 0.125, 0.125]),
    (lambda o: lr_scheduler.ExponentialLR(o, 0.5), [1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625]),
    (lambda o: lr_scheduler.ConstantLR(o, 0.25, 3), [0.25, 0.25, 0.25, 1.0, 1.0, 1.0, 1.0]),
    (lambda o: lr_scheduler.LinearLR(o, 0.5, 1.0, 4), [0.5, 0.625, 0.75, 0.875, 1.0, 1.0, 1.0]),
    (lambda o: lr_scheduler.PolynomialLR(o, 4, 2.0), [1.0, 0.5625, 0.25, 0.0625, 0.0, 0.0, 0.0]),
    (lambda o: lr_scheduler.CosineAnnealingLR(o, 2), [1.0, 0.5, 0.0, 0.5, 1.0, 0.5, 0.0]),
    (lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 2, 2), [1.0, 0.5, 1.0, 0.853553, 0.5, 0.146447, 1.0]),
    (lambda o: lr_scheduler.LambdaLR(o, lambda e: 1 / (e + 1)), [1.0, 1 / 2, 1 / 3, 1 / 4, 1 / 5, 1 / 6, 1 / 7]),
    (lambda o: lr_scheduler.MultiplicativeLR(o, lambda e: 0.5), [1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625]),
    (lambda o: lr_scheduler.CyclicLR(o, 0.0, 1.0, 2), [0.0, 0.5, 1.0, 0.5, 0.0, 0.5, 1.0]),
    (lambda o: lr_scheduler.CyclicLR(o, 0.0, 1.0, 2, mode="triangular2"), [0.0, 0.5, 1.0, 0.5, 0.0, 0.25, 0.5]),
    (
        lambda o: lr_scheduler.OneCycleLR(o, 1.0, total_steps=10, anneal_strategy="linear"),
        [0.04, 0.52, 1.0, 0.857143, 0.714287, 0.57143, 0.428574],
    ),
    (
        lambda o: lr_scheduler.SequentialLR(
            o, [lr_scheduler.ConstantLR(o, 0.1, 9), lr_scheduler.ExponentialLR(o, 0.5)], [3]
        ),
        [0.1, 0.1, 0.1, 1.0, 0.5, 0.25, 0.125],
    ),
    (
        lambda o: lr_scheduler.ChainedScheduler(
            [lr_scheduler.ConstantLR(o, 0.1, 3), lr_scheduler.ExponentialLR(o, 0.5)]
        ),
        [0.1, 0.05, 0.025, 0.125, 0.0625, 0.03125, 0.015625],
    ),
    (
        lambda o: torch.optim.swa_utils.SWALR(o, 0.5, anneal_epochs=4, anneal_strategy="linear"),
        [1.0, 0.875, 0.75, 0.625, 0.5, 0.5, 0.5],
    ),
]


@pytest.mark.parametrize(("make", "expected"), SCHEDULES)
def test_schedule(make: Callable[[Any], Any], expected: list[float]) -> None:
    optimizer = sgd()
    assert rates(optimizer, make(optimizer), len(expected)) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("make", "expected"), SCHEDULES)
def test_a_schedule_goes_on_from_its_state(make: Callable[[Any], Any], expected: list[float]) -> None:
    optimizer = sgd()
    scheduler = make(optimizer)
    rates(optimizer, scheduler, 3)
    saved, saved_optimizer = copy.deepcopy(scheduler.state_dict()), copy.deepcopy(optimizer.state_dict())
    fresh = sgd()
    other = make(fresh)
    other.load_state_dict(saved)
    fresh.load_state_dict(saved_optimizer)
    assert rates(fresh, other, len(expected) - 3) == pytest.approx(expected[3:], abs=1e-6)


def test_momentum_cycles() -> None:
    optimizer = sgd()
    scheduler = lr_scheduler.OneCycleLR(optimizer, 1.0, total_steps=5, anneal_strategy="linear")
    seen = []
    for _ in range(5):
        seen.append(optimizer.param_groups[0]["momentum"])
        optimizer.step()
        scheduler.step()
    assert seen == pytest.approx([0.95, 0.864286, 0.892857, 0.921429, 0.95], abs=1e-6)
    with pytest.raises(ValueError, match="Tried to step 6 times"):
        scheduler.step()


def test_groups_have_their_own_rates() -> None:
    optimizer = sgd(1.0, 0.1)
    scheduler = lr_scheduler.LambdaLR(optimizer, [lambda e: 0.5**e, lambda e: 1.0 + e])
    optimizer.step()
    scheduler.step()
    assert scheduler.get_last_lr() == pytest.approx([0.5, 0.2])
    with pytest.raises(ValueError, match="Expected 2 lr_lambdas, but got 1"):
        lr_scheduler.LambdaLR(optimizer, [lambda e: 1.0])


def test_plateau() -> None:
    optimizer = sgd()
    scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1, cooldown=1, min_lr=0.2)
    seen = []
    for loss in [1.0, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.1, 0.1, 0.1, 0.1, math.nan]:
        scheduler.step(loss)
        seen.append(optimizer.param_groups[0]["lr"])
    assert seen == [1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.2, 0.2, 0.2]
    with pytest.raises(ValueError, match="Factor should be"):
        lr_scheduler.ReduceLROnPlateau(optimizer, factor=1.0)


def test_a_rate_that_is_a_tensor_stays_the_same_tensor() -> None:
    lr = torch.tensor(1.0)
    optimizer = torch.optim.SGD([torch.ones(2, requires_grad=True)], lr=lr)
    scheduler = lr_scheduler.ExponentialLR(optimizer, 0.5)
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] is lr
    assert lr.item() == 0.5


def test_steps_in_the_wrong_order_warn() -> None:
    scheduler = lr_scheduler.StepLR(sgd(), 2)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        scheduler.step()
    optimizer = sgd()
    scheduler = lr_scheduler.StepLR(optimizer, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.step()
        scheduler.step()


def test_the_optimizer_does_not_keep_itself_alive() -> None:
    import gc
    import weakref

    optimizer = sgd()
    scheduler = lr_scheduler.StepLR(optimizer, 2)
    alive = weakref.ref(optimizer)
    gc.disable()
    try:
        del optimizer, scheduler
        assert alive() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("error", "message", "make"),
    [
        (TypeError, "int is not an Optimizer", lambda o: lr_scheduler.StepLR(3, 2)),
        (KeyError, "param 'initial_lr' is not specified", lambda o: lr_scheduler.StepLR(o, 2, last_epoch=4)),
        (ValueError, "either total_steps OR", lambda o: lr_scheduler.OneCycleLR(o, 0.1)),
        (ValueError, "positive integer total_steps", lambda o: lr_scheduler.OneCycleLR(o, 0.1, total_steps=-1)),
        (ValueError, "mode is invalid", lambda o: lr_scheduler.CyclicLR(o, 0.1, 0.2, mode="square")),
        (ValueError, "max_lr has 2 values, param_groups has 1", lambda o: lr_scheduler.CyclicLR(o, 0.1, [0.2, 0.3])),
        (ValueError, "Starting multiplicative factor", lambda o: lr_scheduler.LinearLR(o, 0.0)),
        (ValueError, "positive integer T_0", lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 0)),
        (
            ValueError,
            "one more than the number of milestone points",
            lambda o: lr_scheduler.SequentialLR(o, [lr_scheduler.StepLR(o, 1)], [1]),
        ),
        (
            ValueError,
            "does not support `ReduceLROnPlateau`",
            lambda o: lr_scheduler.ChainedScheduler([lr_scheduler.ReduceLROnPlateau(o)]),
        ),
        (ValueError, "anneal_epochs must be", lambda o: torch.optim.swa_utils.SWALR(o, 0.1, anneal_epochs=-1)),
    ],
)
def test_errors(error: type[Exception], message: str, make: Callable[[Any], Any]) -> None:
    with pytest.raises(error, match=message):
        make(sgd())


def test_averaged_model() -> None:
    from ptr.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

    model = torch.nn.Linear(1, 1, bias=False)
    mean, moving = AveragedModel(model), AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.5))
    for value in (1.0, 2.0, 6.0):
        with torch.no_grad():
            model.weight.fill_(value)
        mean.update_parameters(model)
        moving.update_parameters(model)
    assert mean.module.weight.item() == 3.0
    assert moving.module.weight.item() == 3.75
    assert mean.n_averaged.item() == 3
    assert mean(torch.ones(1, 1)).item() == 3.0


def test_update_bn_computes_the_statistics_of_all_data() -> None:
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(2), torch.nn.InstanceNorm1d(2, track_running_stats=True))
    model.eval()
    data = [torch.arange(12.0).view(2, 2, 3), torch.arange(12.0, 24.0).view(2, 2, 3)]
    kept = model[1].momentum
    torch.optim.swa_utils.update_bn([(batch, None) for batch in data], model)
    everything = torch.cat(data)
    assert model[0].running_mean.tolist() == pytest.approx(everything.mean((0, 2)).tolist())
    assert model[0].momentum == 0.1 and model[1].momentum == kept and not model.training
