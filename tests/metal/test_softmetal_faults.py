"""The software Metal works, and each way to misuse Metal ends with its message."""

import pytest

from softmetal.build import case_names, run_case

FAULTS = {
    # bindings
    "unbound_buffer": "nothing is bound at buffer(1) out",
    "wrong_binding_index": "nothing is bound at buffer(1) out",
    "offset_past_end": "offset 16 in a buffer of 16 bytes",
    "misaligned_offset": "off its type's alignment",
    "long_bytes": "the limit is 4096",
    "output_as_bytes": "bound with setBytes",
    "write_past_end": "writes 4 bytes at byte 32 of buffer(1) out",
    "read_past_end": "reads 4 bytes at byte 16 of buffer(0) x",
    "loop_past_end": "writes 4 bytes at byte 256 of buffer(0) x",
    # residency
    "forgotten_use_resource": "was not made resident",
    "use_resource_after_dispatch": "was not made resident",
    "write_to_read_only_resource": "made resident for reading only",
    "pointer_to_nothing": "points to no buffer",
    "released_buffer": "was released before its use",
    # hazards
    "missing_barrier": "no barrier between scale, which writes",
    "planted_missing_barrier": "no barrier between scale, which writes",
    "barrier_on_other_resource": "no barrier between scale, which writes",
    "untracked_between_encoders": "nothing orders two encoders",
    # threads
    "too_many_threads": "1025 threads",
    "too_much_threadgroup_memory": "bytes of threadgroup memory",
    "odd_threadgroup_memory": "multiple of 16 bytes",
    "threadgroup_memory_past_end": "touches byte 128 of threadgroup memory",
    "divergent_sum": "a simdgroup operation that not all lanes reach",
    "divergent_barrier": "a barrier that not all",
    "race_in_group": "without a barrier",
    "race_in_simdgroup": "without a barrier",
    # encoders and command buffers
    "two_encoders": "a second encoder",
    "encode_after_end": "after endEncoding",
    "commit_with_open_encoder": "commit with an open encoder",
    "commit_twice": "committed twice",
    "wait_before_commit": "before commit",
    "late_handler": "addCompletedHandler after commit",
    "encoder_not_ended": "released without endEncoding",
    "no_pipeline": "without a pipeline",
    # buffers and functions
    "half_a_page": "whole pages of 16 KiB",
    "contents_of_private": "contents of a private buffer",
    "blit_past_end": "past the buffer's end",
    "blit_onto_itself": "the ranges overlap",
    "wrong_type_of_constant": "a value of another type",
    # objects
    "leaked_object": "left alive: SMBuffer 1",
    "leaked_block": "blocks 1",
    "released_twice": "release to a deallocated SMBuffer",
    "used_after_release": "message length to a deallocated SMBuffer",
    "unknown_selector": "-[SMQueue functionNames]: unrecognized selector",
    # indirect command buffers
    "indirect_without_barrier": "no barrier between scale, which writes",
    "indirect_planted_without_barrier": "no barrier between scale, which writes",
    "indirect_not_resident": "buffer(0) x was not made resident",
    "indirect_planted_not_resident": "was not made resident",
    "indirect_planted_shifted": "nothing is bound at buffer(1) out",
    "indirect_untouched_pipeline": "no dispatch of this encoder made its pipeline resident",
    "indirect_plain_pipeline": "without supportIndirectCommandBuffers",
    "indirect_inherits_buffers": "inherits buffers",
    "indirect_bind_count": "maxKernelBufferBindCount is 2",
    "indirect_wrong_type": "not made for this kind of dispatch",
    "indirect_stale_buffer": "was released before its use",
    "indirect_changed_in_flight": "changes while the GPU may execute it",
    "indirect_past_end": "indirect command 2 of 2",
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_ends_with_its_message(name):
    done = run_case(name)
    assert done.returncode != 0
    assert FAULTS[name] in done.stderr


def test_everything_else_runs():
    for name in sorted(set(case_names()) - set(FAULTS)):
        done = run_case(name)
        assert (done.returncode, done.stdout) == (0, "ok\n"), f"{name}: {done.stderr}"


def test_no_fault_is_forgotten():
    assert set(FAULTS) <= set(case_names())


@pytest.mark.parametrize("name", ["indirect_in_flight", "completion_handlers", "resource_barrier"])
def test_order_between_barriers_and_a_slow_gpu_change_nothing(name):
    done = run_case(name, SOFTMETAL_SHUFFLE="1", SOFTMETAL_DELAY_US="2000")
    assert done.stdout == "ok\n", done.stderr


def test_from_apple9_on_no_pipeline_needs_a_touch():
    assert run_case("indirect_untouched_pipeline", SOFTMETAL_FAMILY="9").stdout == "ok\n"


def test_macos_14_has_no_residency_sets():
    assert "exist from macOS 15 on" in run_case("residency_sets", SOFTMETAL_MACOS="14").stderr


def test_a_small_device_runs_out_of_memory():
    assert "does not fit" in run_case("argument_buffer", SOFTMETAL_MEMORY="50").stderr
