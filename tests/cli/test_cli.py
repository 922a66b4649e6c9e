"""The command line, as a user calls it."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time

import pytest

from support.tiny import checkpoint

COMMAND = [sys.executable, "-c", "from butter.cli import main; main()"]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return str(checkpoint("f32", tmp_path_factory.mktemp("tiny")))


def butter(*args, stdin="", env=None, code=0):
    """Run a command; returns (stdout, stderr)."""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", **(env or {})}
    done = subprocess.run(
        [*COMMAND, *args], input=stdin, capture_output=True, text=True, env=environment, timeout=120
    )
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


@pytest.mark.parametrize("name", ["generate", "chat", "inspect", "models", "doctor", "bench"])
def test_each_command_has_help(name):
    out, _ = butter(name, "--help")
    assert out.startswith("Usage: butter " + name)


def test_help_imports_nothing_heavy():
    code = (
        "import sys\nfrom butter.cli import main\ntry:\n    main(['--help'])\n"
        "except SystemExit:\n    pass\n"
        "heavy = {'numpy', 'tokenizers', 'jinja2', 'huggingface_hub', 'butter._native'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    assert out.endswith("[]\n")


def test_import_is_quick():
    code = (
        "import sys, butter\n"
        "print(sorted({'numpy', 'click', 'butter._native', 'butter.model'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    assert out == "[]\n"


def test_generate_prints_the_text(path):
    args = ["generate", path, "the capital", "--raw", "--temperature", "0", "--max-tokens", "8"]
    out, _ = butter(*args)
    result = json.loads(butter(*args, "--json")[0])
    assert out == result["text"] + "\n"
    assert result["finish_reason"] in ("length", "stop")
    assert result["stats"]["prompt_tokens"] > 0
    _, err = butter(*args, "--stats")
    assert "tok/s" in err


def test_the_prompt_may_come_from_stdin(path):
    args = ["--raw", "--temperature", "0", "--max-tokens", "8"]
    expected, _ = butter("generate", path, "the capital", *args)
    assert butter("generate", path, *args, stdin="the capital")[0] == expected
    assert butter("generate", path, "-", *args, stdin="the capital")[0] == expected


def test_sampling_options_reach_the_model(path):
    base = ["generate", path, "x", "--raw", "--json", "--max-tokens", "6", "--ignore-eos"]
    args = [*base, "--logit-bias", "77=100", "--temperature", "0"]
    assert set(json.loads(butter(*args)[0])["tokens"]) == {77}
    many = [*base, "--device", "cpu", "--seed", "5", "--temperature", "1.5", "--top-k", "50"]
    many += ["--top-p", "0.9"]
    many += ["--min-p", "0.01", "--repetition-penalty", "1.1", "--presence-penalty", "0.1"]
    many += ["--frequency-penalty", "0.1", "--stop", "never so", "--stop", "nor so"]
    first = json.loads(butter(*many)[0])
    assert first["seed"] == 5
    assert (
        json.loads(butter(*many, "--dispatch", "icb", "--threads", "1")[0])["tokens"]
        == (first["tokens"])
    )


def test_a_system_message_changes_the_prompt(path):
    args = ["generate", path, "hi", "--temperature", "0", "--max-tokens", "2", "--json"]
    plain = json.loads(butter(*args)[0])["stats"]["prompt_tokens"]
    longer = json.loads(butter(*args, "--system", "be brief")[0])["stats"]["prompt_tokens"]
    assert longer > plain
    assert "--chat" in butter(*args, "--system", "x", "--raw", code=2)[1]


@pytest.mark.parametrize(
    "args,code,text",
    [
        (["generate"], 2, "Missing argument"),
        (["generate", "x", "y", "--dispatch", "magic"], 2, "argument_buffers"),
        (["generate", "x", "y", "--logit-bias", "a=b"], 2, "ID=VALUE"),
        (["fly"], 2, "No such command"),
        (["generate", "x", "y", "--quantize", "q9"], 2, "--quantize: got 'q9', need q2"),
        (["generate", "x"], 2, "stdin is empty"),
        (["generate", "x", "y", "--device", "tpu"], 2, "got 'tpu', need auto, cpu, metal, cuda"),
        (["generate", "~nobody-here/x", "y"], 1, "Write the path out"),
        (["generate", "/dev/zero", "y"], 1, "need a model's"),
        (["generate", "no/such/model/at/all", "y"], 1, "butter: [hub]"),
        (["inspect", "no/such/model/at/all"], 1, "butter: [hub]"),
    ],
)
def test_an_error_is_one_line_and_no_traceback(args, code, text):
    _, err = butter(*args, code=code)
    assert text in err
    assert "Traceback" not in err
    if code == 1:
        assert err.count("\n") == 1


def test_a_bad_value_is_wrong_usage(path):
    _, err = butter("generate", path, "x", "--top-p", "7", code=2)
    assert err.endswith("Error: top_p: got 7.0, need a number above 0 to 1\n")
    assert "need a whole number" in butter("chat", path, "--max-tokens", "0", code=2)[1]


def test_debug_shows_the_traceback(path):
    _, err = butter("generate", path + "no", "x", env={"BUTTER_DEBUG": "1"}, code=1)
    assert "Traceback" in err


# A background shell ignores SIGINT, and children inherit that.
LISTENING = [
    sys.executable,
    "-c",
    "import os, signal, sys\nsignal.signal(signal.SIGINT, signal.SIG_DFL)\n"
    "os.execv(sys.argv[1], sys.argv[1:])",
]


def start(*args, **options):
    command = [*LISTENING, *COMMAND, *args]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)


LONG = ["generate", "smollm2", "Tell a story.", "--ignore-eos", "--max-tokens", "8000"]


@pytest.mark.parametrize("command", ["generate", "chat"])
def test_an_interrupt_ends_with_130_and_no_traceback(command):
    args = LONG if command == "generate" else ["chat", "smollm2"]
    process = start(*args, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    if command == "generate":
        assert process.stdout.read(8)  # the text has begun
    else:
        time.sleep(2)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.strip() == ""


@pytest.mark.parametrize("delay", [0.0, 0.1, 0.3])
def test_an_interrupt_during_imports_is_quiet(delay):
    code = (
        "import sys\nfrom butter.cli import interrupts\ninterrupts.leave_at_once()\n"
        "print(end='x', flush=True)\nfrom butter.cli import main\nmain()"
    )
    process = subprocess.Popen(
        [*LISTENING, sys.executable, "-c", code, *LONG],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.read(1) == "x"
    time.sleep(delay)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "")


def test_streams_may_be_closed_or_of_another_encoding(path):
    command = shlex.join([*COMMAND, "generate", path, "--raw", "--max-tokens", "4"])

    def shell(rest, **options):
        done = subprocess.run(
            f"{command} {rest}", shell=True, capture_output=True, timeout=120, **options
        )
        assert b"Traceback" not in done.stderr
        return done

    assert b"stdout is closed" in shell("x >&-").stderr
    assert b"stdin is empty" in shell("<&-").stderr
    assert b"need UTF-8" in shell("", input=b"caf\xe9").stderr
    assert b"need UTF-8" in shell("$(printf 'caf\\351')").stderr
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    assert shell("'\u00e9' --temperature 2 --ignore-eos", env=ascii_only).returncode == 0


def test_an_answer_cut_by_the_context_says_so(path):
    args = ["generate", path, "x", "--raw", "--max-context", "16", "--ignore-eos"]
    assert "context is full" in butter(*args)[1]
    assert json.loads(butter(*args, "--json")[0])["finish_reason"] == "context"
    assert "butter: max_context 300 is beyond" in butter(*args, "--max-context", "300")[1]


def test_a_chat_outlives_lines_that_cannot_be_answered(path):
    args = ["chat", path, "--max-context", "64", "--max-tokens", "4"]
    lines = f"hello\n{'word ' * 99}\n/reset\nhello\n/nonsense\n"
    out, err = butter(*args, stdin=lines, code=1)
    assert "/reset begins again" in err
    assert "no command /nonsense" in err
    assert out.count("\n") >= 2


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_the_first_interrupt_at_the_prompt_only_warns(path):
    import pty

    ours, theirs = pty.openpty()
    process = start("chat", path, stdin=theirs, stderr=subprocess.PIPE)
    os.close(theirs)
    for expected in ("/help lists", "Ctrl-C again"):
        while expected not in (line := process.stderr.readline()):
            assert line is not None and process.poll() is None
        time.sleep(0.5)  # until it waits for a line
        process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    assert "Traceback" not in process.stderr.read()
    os.close(ours)


def test_a_closed_pipe_is_quiet(path):
    args = ["generate", path, "x", "--raw", "--ignore-eos", "--max-tokens", "200"]
    process = start(*args, "--temperature", "2", stderr=subprocess.PIPE)
    process.stdout.close()
    err = process.stderr.read()
    assert process.wait(timeout=60) != 0
    assert err == ""


def test_chat_keeps_the_conversation(path):
    args = ["chat", path, "--temperature", "0", "--max-tokens", "5", "--stats"]
    out, err = butter(*args, stdin="hello\nagain\n/reset\nhello\n/nonsense\n/exit\nnever\n")
    answers = err.count("first token after")
    assert answers == 3
    assert "from the cache" in err
    assert "/system" in err
    assert out


def test_inspect_shows_config_weights_and_tokenizer(path):
    out, _ = butter("inspect", path, "--tensors")
    assert "hidden_size" in out
    assert "model.layers.1.mlp.down_proj.weight" in out
    facts = json.loads(butter("inspect", path, "--json", "--template")[0])
    assert facts["family"] == "llama"
    assert facts["weights"]["f32"]["tensors"] == 21
    template = facts["template_text"]["default"]
    assert "add_generation_prompt" in template
    assert butter("inspect", path, "--template")[0] == template + "\n"


def test_models_lists_the_aliases():
    out, _ = butter("models")
    assert out.startswith("smollm2")
    assert "smollm2" in json.loads(butter("models", "--json")[0])["aliases"]


def test_doctor_finds_this_machine_sound():
    out, _ = butter("doctor")
    assert "all good" in out
    facts = json.loads(butter("doctor", "--device", "cpu", "--json")[0])
    assert facts["ok"]
    assert {c["mode"] for c in facts["checks"]} == {"eager", "argument_buffers", "icb"}


def test_bench_measures_each_mode(path):
    args = ["--repeats", "1", "--tokens", "8", "--json"]
    facts = json.loads(butter("bench", "decode", path, *args)[0])
    assert set(facts["modes"]) == {"eager", "argument_buffers", "icb"}
    assert all(row["host_us_per_token"] > 0 for row in facts["modes"].values())
    facts = json.loads(butter("bench", "prefill", path, *args, "--dispatch", "icb")[0])
    assert facts["modes"]["icb"]["tokens_per_s"] > 0
