"""Threads within what this process may use, and bound to CPUs on request."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from butter import _native
from butter.errors import ConfigError, UnsupportedError
from native.chain import Chain, random_words

linux = pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="binds no threads")
CPUS = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]


def bound() -> list[str]:
    """Where each thread of this process may run."""
    texts = [p.read_text() for p in Path("/proc/self/task").glob("*/status")]
    return [t.partition("Cpus_allowed_list:")[2].split()[0] for t in texts]


@linux
def test_each_worker_is_bound_to_its_cpu_and_no_other_thread_is():
    before = bound()
    device = _native.open_device("cpu", affinity=CPUS)
    assert device.threads == len(CPUS)
    after = bound()
    for cpu in CPUS:
        assert after.count(str(cpu)) == before.count(str(cpu)) + 1
    assert len(after) == len(before) + len(CPUS)


@linux
def test_fewer_threads_take_the_first_cpus():
    before = bound()
    device = _native.open_device("cpu", threads=1, affinity=CPUS[::-1])
    assert device.threads == 1
    assert bound().count(str(CPUS[-1])) == before.count(str(CPUS[-1])) + 1


@linux
def test_affinity_changes_no_result():
    tokens = []
    for affinity in ([], CPUS[:1], CPUS):
        chain = Chain(_native.open_device("cpu", affinity=affinity))
        chain.reset(5)
        loop = _native.DecodeLoop(chain.plan.prepare("icb"), [], 10**6)
        loop.start(random_words(7), 0, 40)
        tokens.append(np.array(loop.run(40)))
    assert (tokens[0] == tokens[1]).all() and (tokens[0] == tokens[2]).all()


@linux
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"affinity": [1023]}, f"got CPU 1023, need some of {CPUS[0]}"),
        ({"affinity": [-1]}, "got CPU -1, need some of"),
        ({"affinity": [CPUS[0], CPUS[0]]}, f"got CPU {CPUS[0]} twice, need each once"),
        ({"affinity": CPUS[:1], "threads": 2}, "got 1 CPUs for 2 threads, need one for each"),
    ],
    ids=["unknown", "negative", "twice", "too few"],
)
def test_cpus_that_cannot_be_had_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        _native.open_device("cpu", **options)


def test_affinity_is_for_cpus():
    with pytest.raises(ConfigError, match="affinity applies to the CPU only: got 0 for 'cuda'"):
        _native.open_device("cuda", affinity=[0])


@pytest.mark.skipif(sys.platform == "linux", reason="binds threads")
def test_systems_that_bind_no_threads_say_so():
    with pytest.raises(UnsupportedError, match="binds no threads"):
        _native.open_device("cpu", affinity=[0])


@linux
def test_the_usual_number_of_threads_fits_the_mask_of_the_process():
    code = (
        f"import os; os.sched_setaffinity(0, [{CPUS[-1]}])\n"
        "from butter import _native\n"
        "print(_native.open_device('cpu').threads)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["1"]


QUOTAS = {
    "none": ({}, 0),
    "no limit": ({"fs/cgroup/cpu.max": "max 100000\n"}, 0),
    "of the root": ({"fs/cgroup/cpu.max": "250000 100000\n"}, 3),
    "less than one": ({"fs/cgroup/cpu.max": "5000 100000\n"}, 1),
    "of the own group": (
        {"self": "0::/a/b\n", "fs/cgroup/a/b/cpu.max": "200000 100000\n"},
        2,
    ),
    "the tighter one above": (
        {
            "self": "0::/a/b\n",
            "fs/cgroup/a/b/cpu.max": "700000 100000\n",
            "fs/cgroup/a/cpu.max": "400000 100000\n",
            "fs/cgroup/cpu.max": "max 100000\n",
        },
        4,
    ),
    "version 1": (
        {
            "self": "12:pids:/x\n4:cpu,cpuacct:/a\n1:name=systemd:/y\n",
            "fs/cgroup/cpu/a/cpu.cfs_quota_us": "150000\n",
            "fs/cgroup/cpu/a/cpu.cfs_period_us": "50000\n",
        },
        3,
    ),
    "version 1 in a container": (
        {
            "self": "4:cpuacct,cpu:/docker/0123\n",
            "fs/cgroup/cpu/cpu.cfs_quota_us": "200000\n",
            "fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
        },
        2,
    ),
    "version 1 without a limit": (
        {
            "self": "4:cpu:/\n",
            "fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
            "fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
        },
        0,
    ),
    "nonsense": ({"self": "\n:\n0:\n0::/a", "fs/cgroup/cpu.max": "many\n"}, 0),
}


@pytest.mark.skipif(sys.platform != "linux", reason="control groups are Linux's")
@pytest.mark.parametrize("name", QUOTAS)
def test_the_tightest_quota_of_the_groups_counts(name, tmp_path):
    files, want = QUOTAS[name]
    for path, text in files.items():
        at = tmp_path / ("proc/self/cgroup" if path == "self" else f"sys/{path}")
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_text(text)
    assert _native.cgroup_quota(str(tmp_path)) == want
