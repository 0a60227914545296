"""What importing costs, and what it must not pull in."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
before = set(sys.modules)
import ptr
new = set(sys.modules) - before
assert "numpy" not in sys.modules, "numpy was imported"
print(len([name for name in new if name.split(".")[0] == "ptr"]), len(new))
"""


def test_import_is_small():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    own, all_of_them = map(int, done.stdout.split())
    assert own <= 45 and all_of_them <= 60


def test_public_names_exist():
    import ptr

    missing = [name for name in ptr.__all__ if not hasattr(ptr, name)]
    assert not missing
    for name in (
        "float32",
        "strided",
        "channels_last",
        "add",
        "zeros",
        "nn",
        "no_grad",
        "Tensor",
        "ops",
        "pi",
        "newaxis",
    ):
        assert hasattr(ptr, name)


def test_submodules_of_utils_are_found_when_touched():
    program = "import ptr; ptr.utils.dlpack.to_dlpack; ptr.utils._python_dispatch.TorchDispatchMode; ptr.utils.data"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_there_is_no_cuda_device():
    import ptr

    assert not ptr.cuda.is_available() and ptr.cuda.device_count() == 0
    ptr.cuda.manual_seed_all(0)
