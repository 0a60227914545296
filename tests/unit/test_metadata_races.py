"""One thread changes sizes and storage of tensors with which others compute.

Which comes first is not defined, so the programs below accept an error. They run in processes of their own: what they
prove is that the process lives, and that whoever reads sees either the old tensor or the new one, whole.
"""

import subprocess
import sys
import textwrap

import pytest

COMMON = """
import itertools
import threading
import ptr

def race(compute, *changes, turns):
    # `compute` runs so many times, and the others over and over meanwhile.
    failures, done = [], threading.Event()

    def run(body, turns):
        try:
            for turn in turns:
                try:
                    body(turn)
                except RuntimeError:
                    pass  # Two shapes met.
        except BaseException as error:
            failures.append(error)
            raise

    def until_done():
        return itertools.takewhile(lambda _: not done.is_set(), itertools.count())

    threads = [threading.Thread(target=run, args=(change, until_done())) for change in changes]
    for thread in threads:
        thread.start()
    run(compute, range(turns))
    done.set()
    for thread in threads:
        thread.join()
    assert not failures, failures
"""

PROGRAMS = {
    # Sizes of more than five dimensions are on the heap: a torn read would follow a freed pointer.
    "set_ and data": """
        n = 1 << 17
        x = ptr.ones(n)
        sources = [ptr.ones(shape) for shape in [(2,) * 17, (n,), (2,) * 9, (1,) * 9 + (n,)]]
        def compute(turn):
            assert (ptr.cat([x] * 400) == 1).all()
        def set_(turn):
            x.set_(sources[turn % 4])
        def data(turn):
            x.data = sources[turn % 3]
        race(compute, set_, data, turns=60)
    """,
    "resize_": """
        x, y = ptr.ones(1 << 17), ptr.ones(1 << 17)
        def compute(turn):
            (x * y).sum()
        def up(turn):
            x.resize_((2,) * 17)
        def down(turn):
            x.resize_(8)
        race(compute, up, down, turns=1000)
    """,
    "out= is given new sizes": """
        large, small, out = ptr.ones(1 << 17), ptr.ones((1,) * 7 + (8,)), ptr.ones(0)
        def grow(turn):
            ptr.add(large, large, out=out.resize_(0))
        def shrink(turn):
            ptr.add(small, small, out=out.resize_(0))
        def look(turn):
            assert tuple(out.shape) in {(0,), (1 << 17,), (1,) * 7 + (8,)}
        race(grow, grow, shrink, look, turns=300)
    """,
    "backward": """
        m = ptr.ones(300, 300)
        p = ptr.ones(300, 300, requires_grad=True)
        def train(turn):
            (m @ p * p).sum().backward()
        def data(turn):
            p.data = ptr.ones(3, 3) if turn % 20 == 0 else ptr.ones(300, 300)
        def grad(turn):
            if p.grad is not None:
                p.grad.set_(ptr.ones((1,) * 7 + (300, 300)) if turn % 3 else ptr.ones(300, 300))
        race(train, train, data, grad, turns=60)
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_race(name):
    program = COMMON + textwrap.dedent(PROGRAMS[name])
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_a_change_under_a_hook_does_not_wait_for_its_own_backward():
    import ptr

    p = ptr.ones(400, 400, requires_grad=True)

    def replace(parameter):
        parameter.data = parameter.data - parameter.grad
        parameter.grad.resize_(0)

    p.register_post_accumulate_grad_hook(replace)
    (p * 2).sum().backward()
    assert p.grad.shape == (0,)
    assert (p == -1).all()


def test_a_forked_child_does_not_wait_for_its_parents_threads():
    program = """
import os, threading, time
import ptr
x = ptr.ones(1500, 1500)
started = threading.Event()
def compute():
    started.set()
    for _ in range(3):
        x @ x
thread = threading.Thread(target=compute)
thread.start()
started.wait()
time.sleep(0.02)
pid = os.fork()
if pid == 0:
    x.set_(ptr.ones(3))
    os._exit(0 if x.shape == (3,) else 1)
status = os.waitpid(pid, 0)[1]
thread.join()
assert status == 0, status
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
