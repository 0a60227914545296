"""Large work lets other Python threads run."""

import threading

import ptr
import pytest


@pytest.mark.parametrize(
    "work",
    [lambda: ptr.randn(20_000_000), lambda: ptr.randperm(5_000_000), lambda: ptr.ones(3000, 3000).exp()],
    ids=["sizes", "count", "tensor"],
)
def test_large_work_releases_the_lock(work):
    count, done = 0, threading.Event()

    def spin():
        nonlocal count
        while not done.is_set():
            count += 1

    thread = threading.Thread(target=spin)
    thread.start()
    try:
        before = count
        work()
        assert count > before
    finally:
        done.set()
        thread.join()
