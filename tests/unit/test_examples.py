"""The scripts in examples/ run; what they need beyond the tests is in requirements/demo.txt."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(script: str, *arguments: object) -> subprocess.CompletedProcess:
    command = [sys.executable, EXAMPLES / script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_char_gpt_learns(tmp_path):
    for name in ("matplotlib", "tqdm"):
        pytest.importorskip(name)
    options = {"--steps": 12, "--batch": 2, "--characters": 20_000, "--sample": 10, "--threads": 1, "--out": tmp_path}
    done = run("char_gpt.py", *(part for option in options.items() for part in option))
    # So few steps leave the loss above the one that is asked for.
    assert done.returncode == 1, done.stderr
    loss = float(re.search(r"loss (\d+\.\d+) after 12 steps", done.stdout)[1])
    assert loss < 4.5
    assert done.stdout.startswith("def ")
    assert (tmp_path / "char_gpt.png").read_bytes().startswith(b"\x89PNG")
