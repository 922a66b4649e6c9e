"""What goes wrong is a typed error, and the next request works; misuse of Metal would be caught."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from backend import MODES, Software, metal

import butter
from butter import _native
from butter.errors import DeviceError, KernelError, OutOfMemory
from native.chain import Chain, greedy_words
from softmetal.build import compile_msl
from support.tiny import checkpoint

START = 7


@pytest.fixture(scope="module")
def device():
    return metal()


@pytest.fixture(scope="module")
def software():
    return Software()


@pytest.fixture(scope="module")
def chain(device):
    return Chain(device)


def decode(chain, mode, count=8):
    loop = _native.DecodeLoop(chain.plan.prepare(mode), [], 1000)
    chain.reset(START)
    loop.start(greedy_words(), 0, count, 0)
    return loop.run(count)


@pytest.mark.parametrize("mode", MODES)
def test_an_injected_fault_is_raised_and_the_next_run_works(chain, mode):
    chain.device.inject_fault("the GPU caught fire")
    with pytest.raises(DeviceError, match="caught fire"):
        decode(chain, mode)
    assert decode(chain, mode) == chain.greedy(START, 8)


@pytest.mark.parametrize("nth", [1, 2, 5])
@pytest.mark.parametrize("mode", MODES)
def test_a_failing_command_buffer_is_raised_and_the_next_run_works(chain, software, mode, nth):
    software.plant(f"fail_command_buffer:{nth}")
    with pytest.raises(DeviceError, match=r"\[metal\]"):
        decode(chain, mode)
    assert software.planted() == 0
    assert decode(chain, mode) == chain.greedy(START, 8)


@pytest.mark.parametrize("mode", MODES)
def test_a_failed_request_is_raised_and_the_next_one_gives_its_tokens(software, mode, tmp_path):
    path = checkpoint("f32", tmp_path)
    with butter.Model.load(path, device="metal", dispatch=mode, prewarm=False) as model:
        want = model.generate([1, 5, 9], max_tokens=6, temperature=0).tokens
        software.plant("fail_command_buffer:3")
        with pytest.raises(DeviceError, match=r"\[metal\]"):
            model.generate([1, 5, 9], max_tokens=6, temperature=0)
        assert software.planted() == 0
        assert model.generate([1, 5, 9], max_tokens=6, temperature=0).tokens == want


@pytest.mark.parametrize("nth", [1, 3])
@pytest.mark.parametrize("mode", MODES)
def test_a_failed_request_leaves_its_session_as_it_was(software, mode, nth, tmp_path):
    sampling = {"max_tokens": 6, "temperature": 0, "ignore_eos": True}
    path = checkpoint("f32", tmp_path)
    with butter.Model.load(path, device="metal", dispatch=mode, prewarm=False) as model:
        session, spared = model.session(), model.session()
        for prompt in ([1, 5, 9], [4, 4, 4]):
            held = session.tokens
            software.plant(f"fail_command_buffer:{nth}")  # the prompt's, or that of a token
            with pytest.raises(DeviceError, match=r"\[metal\]"):
                session.generate(prompt, **sampling)
            assert (software.planted(), session.tokens) == (0, held)
            got = session.generate(prompt, **sampling).tokens
            assert got == spared.generate(prompt, **sampling).tokens


def test_a_failed_allocation_is_raised(device, software):
    software.plant("fail_allocation:1")
    with pytest.raises(OutOfMemory):
        device.allocate(1 << 12)
    device.allocate(1 << 12)


def test_a_failed_pipeline_is_raised_and_built_again(software):
    device = _native.open_device("metal")  # a new one, which has no pipelines
    memory = device.allocate(64)
    whole = (memory, 0, 64)
    out = device.allocate(64)
    software.plant("fail_pipeline:1")
    arguments = ("add_bias__f32", [whole, whole, (out, 0, 64)])
    with pytest.raises(KernelError, match="could not compile the pipeline"):
        device.run(*arguments, dims=[1, 16])
    device.run(*arguments, dims=[1, 16])


def test_synchronize_waits_for_what_nobody_waited_for(chain):
    replay = chain.plan.prepare("icb")
    chain.reset(START)
    replay.submit(greedy_words())
    chain.device.synchronize()
    assert np.frombuffer(chain.next.read(), np.int32) == chain.greedy(START, 1)


# -- libraries ---------------------------------------------------------------------------------


def run_add(device=None):
    device = device or _native.open_device("metal")
    memory = device.allocate(64)
    whole = (memory, 0, 64)
    device.run("add__f32", [whole, whole, (device.allocate(64), 0, 64)], dims=[1, 16])


@pytest.fixture
def library(device, tmp_path, monkeypatch):
    """A folder of kernels that a test may break."""
    monkeypatch.setenv("BUTTER_METAL_KERNELS", str(tmp_path))
    return tmp_path


def text_of(name):
    return Path(_native.__file__).parent / "metal" / f"{name}.metal"


ADVICE = r" Unset BUTTER_METAL_KERNELS, or correct it\.$"


def test_no_kernels_at_all_are_refused(library):
    text = "neither kernels.metallib nor a folder 'metal' in "
    with pytest.raises(KernelError, match=rf"{text}.*\.{ADVICE}"):
        run_add()


def test_a_corrupt_metallib_is_refused(library):
    (library / "kernels.metallib").write_bytes(b"MTLB" + bytes(1000))
    with pytest.raises(KernelError, match=rf"could not load .*kernels\.metallib.*{ADVICE}"):
        run_add()


def test_text_that_does_not_compile_is_refused_by_each_kernel_but_compiled_once(library, software):
    (library / "metal").mkdir()
    text = library / "metal" / "elementwise.metal"
    text.write_text("kernel void broken(")
    device = _native.open_device("metal")
    software.reset()
    for _ in range(3):
        with pytest.raises(KernelError, match=r"could not compile .*elementwise\.metal"):
            run_add(device)
    assert software.calls("device newLibraryWithSource") == 1
    shutil.copy(text_of("elementwise"), text)
    run_add()  # a new device tries again


def test_a_metallib_without_a_kernel_is_refused(library, software):
    binary = library / "kernels.metallib"
    done = compile_msl("--runner", software.folder, "--out", binary, text_of("rope"))
    assert done.returncode == 0, done.stderr
    with pytest.raises(KernelError, match="no Metal code for 'add__f32'"):
        run_add()


def test_a_missing_text_is_refused(library):
    (library / "metal").mkdir()
    with pytest.raises(KernelError, match=rf"could not read .*elementwise\.metal\.{ADVICE}"):
        run_add()


def test_a_library_without_a_kernel_is_refused(library):
    if not text_of("rope").exists():
        pytest.skip("this build ships a metallib")
    (library / "metal").mkdir()
    shutil.copy(text_of("rope"), library / "metal" / "elementwise.metal")
    with pytest.raises(KernelError, match="no Metal code for 'add__f32'"):
        run_add()


def test_compiled_pipelines_are_kept_on_disk(library, software, tmp_path_factory, monkeypatch):
    if not text_of("elementwise").exists():
        pytest.skip("this build ships a metallib")
    monkeypatch.delenv("BUTTER_METAL_KERNELS")
    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("BUTTER_METAL_CACHE", str(cache))
    run_add()
    (archive,) = cache.iterdir()
    assert archive.name.startswith("elementwise-")

    def compiled():
        software.reset()
        run_add()
        return software.calls("device newComputePipelineState")

    assert compiled() == 1  # found
    archive.write_bytes(b"garbage")
    assert compiled() == 2  # looked for, then compiled


# -- misuse, which the software Metal ends the process for ----------------------------------------


def run_child(code):
    path = f"import sys; sys.path[:0] = {sys.path!r}\n"
    return subprocess.run([sys.executable, "-c", path + code], capture_output=True, text=True)


# With a bias, so that each buffer is touched: which one a fault hits is a matter of addresses.
CHILD = """
from native.chain import Chain
from butter import _native
from butter.step import step_words
chain = Chain(_native.open_device("metal"))
software = __import__("backend").Software()
software.plant("{at_load}")
replay = chain.plan.prepare("{mode}")
chain.reset(7)
software.plant("{at_run}")
for _ in range(4):
    replay.run(step_words(repetition=1.0, sample=1, rows=1, use_bias=1))
print("ran to the end")
"""


@pytest.mark.parametrize(
    ("mode", "at_load", "at_run", "complaint"),
    [
        ("eager", "", "skip_barrier:1", "no barrier between"),
        ("eager", "", "shift_binding:1", "nothing is bound at buffer"),
        ("argument_buffers", "", "skip_use_resource:1", "__table: reads 4 bytes at"),
        ("argument_buffers", "skip_allocation:1", "", "__table: reads 4 bytes at"),
        ("argument_buffers", "", "shift_binding:1", "nothing is bound at buffer(0) tables"),
        ("icb", "", "skip_use_resource:1", "was not made resident"),
        ("icb", "skip_allocation:1", "", "was not made resident"),
        ("icb", "skip_barrier:1", "", "no barrier between"),
        ("icb", "shift_binding:1", "", "nothing is bound at buffer"),
        ("eager", "", "over_release:1", "to a deallocated SMBuffer"),
        ("argument_buffers", "", "over_release:1", "to a deallocated SMBuffer"),
        ("icb", "over_release:2", "", "to a deallocated SMBuffer"),
    ],
)
def test_misuse_would_be_caught(software, mode, at_load, at_run, complaint):
    code = CHILD.format(mode=mode, at_load=at_load, at_run=at_run)
    child = run_child(code)
    assert child.returncode != 0
    assert child.stdout == ""
    assert complaint in child.stderr


CONCURRENT = """
from butter import _native
device = _native.open_device("metal")
program = _native.Program(device)
x = program.buffer(device.allocate(4096), 0, 4096, "f32")
made = [program.activation(4096, "f32") for _ in range(6)]
for y, z, results in (x, x, made[:3]), (made[0], made[1], made[3:]):
    for kernel, out in zip(("add__f32", "silu_mul__f32", "add_bias__f32"), results):
        program.dispatch(kernel, [y, z, out], dims=[1, 1024])
for tensor in made[3:]:
    program.keep(tensor)
replay = program.finish().prepare("argument_buffers")
software = __import__("backend").Software()
software.reset()
software.plant("{plant}")
replay.run([0, 1] + [0] * 62)
print("barriers", software.calls("compute memoryBarrier"))
"""


@pytest.mark.parametrize(
    ("plant", "out", "complaint"),
    [
        ("", "barriers 1\n", ""),
        ("skip_barrier:1", "", "no barrier between"),
    ],
)
def test_a_barrier_of_concurrent_argument_buffers_is_needed(software, plant, out, complaint):
    child = run_child(CONCURRENT.format(plant=plant))
    assert (child.returncode == 0, child.stdout) == (not plant, out)
    assert complaint in child.stderr


WORK = """
import gc
import backend
from native.chain import Chain, greedy_words
from butter import _native
from butter.errors import DeviceError
def work(software):
    chain = Chain(_native.open_device("metal"))
    for mode in backend.MODES:
        loop = _native.DecodeLoop(chain.plan.prepare(mode), [], 1000)
        chain.reset(7)
        loop.start(greedy_words(), 0, 20, 0)
        loop.run(5)
        software.plant("fail_command_buffer:1")
        try:
            loop.run(9)
        except DeviceError:
            pass
software = backend.Software()
backend.metal.cache_clear()
work(software)
gc.collect()
print("alive", software.live_objects())
"""


def test_nothing_is_left_but_the_device(software):
    child = run_child(WORK)
    assert child.stdout == "alive 1\n", child.stderr


@pytest.mark.parametrize("nth", [1, 20])
def test_a_leaked_object_would_be_seen(software, nth):
    plant = f"software = backend.Software()\nsoftware.plant('leak:{nth}')"
    child = run_child(WORK.replace("software = backend.Software()", plant))
    assert child.stdout == "alive 2\n", child.stderr
