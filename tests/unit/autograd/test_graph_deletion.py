"""Long chains are freed without recursion."""

import ptr


def test_a_chain_of_gradients():
    grad = ptr.ones(1)
    for _ in range(100_000):
        leaf = ptr.ones(1, requires_grad=True)
        leaf.grad = grad
        grad = leaf
    del leaf, grad
