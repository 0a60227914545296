"""no_grad, enable_grad, set_grad_enabled, inference_mode and anomaly modes."""

import threading

import ptr as torch
import pytest
from ptr.autograd import anomaly_mode, grad_mode


def enabled():
    return torch.is_grad_enabled()


def test_contexts_nest_and_restore():
    with grad_mode.no_grad():
        assert not enabled()
        with grad_mode.enable_grad():
            assert enabled()
        assert not enabled()
    assert enabled()
    with pytest.raises(ValueError), grad_mode.no_grad():
        raise ValueError
    assert enabled()


def test_decorators():
    @grad_mode.no_grad()
    def called():
        """Doc."""
        return enabled()

    @grad_mode.no_grad
    def bare():
        return enabled()

    @grad_mode.no_grad()
    @grad_mode.enable_grad
    def inner():
        return enabled()

    assert called() is False and bare() is False and inner() is True and enabled()
    assert called.__name__ == "called" and called.__doc__ == "Doc."


def test_decorated_functions_may_recurse():
    @grad_mode.no_grad()
    def count(n):
        return [enabled()] + (count(n - 1) if n else [])

    assert count(3) == [False] * 4 and enabled()


def test_decorated_generators_leave_the_mode_to_their_consumer():
    @grad_mode.no_grad()
    def generate():
        try:
            received = yield enabled()
            yield (received, enabled())
        except KeyError:
            yield ("caught", enabled())
        return "end"

    gen = generate()
    assert next(gen) is False and enabled()
    assert gen.send("x") == ("x", False) and enabled()
    assert gen.throw(KeyError()) == ("caught", False) and enabled()
    with pytest.raises(StopIteration) as stop:
        next(gen)
    assert stop.value.value == "end"
    closing = generate()
    next(closing)
    closing.close()
    assert enabled()


def test_set_grad_enabled():
    grad_mode.set_grad_enabled(False)
    assert not enabled()
    grad_mode.set_grad_enabled(True)
    with grad_mode.set_grad_enabled(False):
        assert not enabled()
    assert enabled()

    @grad_mode.set_grad_enabled(False)
    def function():
        return enabled()

    assert enabled() and function() is False and enabled()


def test_classes_warn_when_decorated():
    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):
        make = grad_mode.no_grad()(dict)
    assert make(a=1) == {"a": 1}


def test_inference_mode():
    with grad_mode.inference_mode():
        x = torch.ones(1)
        assert x.is_inference() and not enabled()
    assert not torch.ones(1).is_inference()

    @grad_mode.inference_mode
    def bare():
        return torch.ones(1).is_inference()

    @grad_mode.inference_mode(False)
    def off():
        return torch.ones(1).is_inference()

    assert bare() and not off()


def test_anomaly_modes():
    is_enabled = torch._C.is_anomaly_enabled
    with pytest.warns(UserWarning, match="Anomaly Detection"):
        context = anomaly_mode.detect_anomaly(check_nan=False)
    assert not is_enabled()
    with context:
        assert is_enabled() and not torch._C.is_anomaly_check_nan_enabled()
    assert not is_enabled()
    with anomaly_mode.set_detect_anomaly(True):
        assert is_enabled()
    assert not is_enabled()


def test_anomaly_mode_is_the_process_s():
    seen = []
    thread = threading.Thread(target=lambda: seen.append(torch.is_anomaly_enabled()))
    with anomaly_mode.set_detect_anomaly(True):
        thread.start()
        thread.join()
    assert seen == [True] and not torch.is_anomaly_enabled()
