"""The command line: one line and exit status 2 for wrong input, one JSON document for scripts, fast start."""

import json
import os
import resource
import subprocess
import sys

import pytest

from spikesym.cli import build_parser, main

_SIZES = ["-d", "60", "-n", "120", "-m", "90", "--eta", "120"]


def run(capsys, *argv):
    status = main(list(argv))
    out, err = capsys.readouterr()
    return status, out, err


def run_json(capsys, *argv):
    status, out, err = run(capsys, *argv, "--json")
    assert status == 0, err
    assert err == ""
    return json.loads(out)


ATTACKS = [
    "__import__('os').system('touch pwned')",
    "().__class__",
    "().__class__.__bases__[0].__subclasses__()",
    "9**9**9**9",
    "lambda: 0",
    "(lambda s: s)(1)",
    "[s for s in (1,2)]",
    "open('/etc/passwd').read()",
    "s.diff()",
    "f'{s}'",
    "'s'",
    "s; s",
    "s = 1",
    "exec('1')",
    "eval('s')",
    "nonsense(s)",
    "s if s else 1",
    "1e999999999*s",
    "s**(10**10)",
    "((((((((" * 100,
    "s" * 100000,
    "-" * 5000 + "s",
    "s\x00",
    "",
    "   ",
    "he999999999(s)",
    "s + z + q(",
    "ѕ",
]


@pytest.mark.parametrize("expression", ATTACKS)
@pytest.mark.parametrize("option", ["--link", "--activation"])
def test_hostile_expressions_are_refused_in_one_line(capsys, tmp_path, monkeypatch, option, expression):
    monkeypatch.chdir(tmp_path)
    status, out, err = run(capsys, "derive", option, expression)
    assert status == 2
    assert out == ""
    assert err.count("\n") == 1
    assert option in err
    assert len(err) < 700
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("argv", "where"),
    [
        (["derive", "-d", "0"], "-d"),
        (["derive", "-n", "-3"], "-n"),
        (["derive", "--eta", "nan"], "--eta"),
        (["derive", "--noise-var", "-1"], "--noise-var"),
        (["derive", "--link", "exp(s**2)"], "--link"),
        (["derive", "--link", "exp(s**2/4)"], "--link"),
        (["derive", "--link", "1/s"], "--link"),
        (["derive", "--digits", "0"], "--digits"),
        (["derive", "--digits", "100000"], "--digits"),
        (["derive", "--seed", "-1"], "--seed"),
        (["derive", "--set", "a"], "--set"),
        (["derive", "--set", "a=1", "--set", "a=2"], "--set"),
        (["derive", "--readout", "constant1"], "--readout"),
        (["spectrum", "-d", "10", "--A", "0", "--B", "1"], "--A"),
        (["spectrum", "-d", "10", "--A", "1", "--B", "-1"], "--B"),
        (["spectrum", "-d", "10", "--A", "1"], "--B"),
        (["spectrum", "--A", "1", "--B", "1"], "-d"),
        (["simulate", "-d", "10"], "-n"),
        (["simulate", *_SIZES, "--reps", "1"], "--reps"),
        (["kernel", "--at", "missing-file.npz"], "--at"),
        (["verify", "--only", "nonsense"], "--only"),
        (["report"], "--out"),
        (["frobnicate"], "frobnicate"),
        ([], "COMMAND"),
        (["derive", "--json", "--latex"], "--latex"),
        (["derive", "--lin", "relu"], "--lin"),
    ],
)
def test_wrong_input_is_one_line_and_status_2(capsys, argv, where):
    status, out, err = run(capsys, *argv)
    assert status == 2
    assert out == ""
    assert err.count("\n") == 1
    assert where in err


def test_derive_check_value(capsys):
    document = run_json(capsys, "derive", "--link", "relu", *_SIZES)
    assert document["A"]["exact"]["value"] == "1.25591750754041"
    a, b = (float(document[name]["exact"]["value"]) for name in "AB")
    assert a + b == pytest.approx(8.44326565048166, rel=1e-14)
    assert document["hermite"]["activation"]["mu1"]["sympy"] == "1/2"
    assert len(document["hermite"]["link"]["c"]) == 12


def test_derive_without_sizes_gives_formulas_and_null_values(capsys):
    document = run_json(capsys, "derive", "--link", "relu")
    for form in ("rank_one", "leading", "exact"):
        for name in "AB":
            assert document[name][form]["value"] is None
            assert document[name][form]["sympy"]
            assert document[name][form]["latex"]


def test_a_link_that_begins_with_a_minus_sign(capsys):
    assert run(capsys, "derive", "--link", "-s", *_SIZES)[0] == 0


def test_spectrum_check_values(capsys):
    document = run_json(capsys, "spectrum", "-d", "1000", "--A", "1", "--B", "5")
    rows = {(r["sector"], r["degree"]): r for r in document["eigenvalues"]}
    assert float(rows[0, 0]["ratio"]) == pytest.approx(1.0050124260, abs=1e-10)
    assert float(rows[0, 2]["ratio"]) == pytest.approx(34.790623187, abs=1e-9)
    assert float(rows[0, 0]["composition"]["2"]) == pytest.approx(1.2364244e-5, abs=1e-12)
    assert float(rows[0, 1]["value"]) == pytest.approx(6 / 4000, rel=1e-15)


def test_kernel_text_latex_and_json(capsys):
    for form in ("--text", "--latex", "--json"):
        status, out, err = run(capsys, "kernel", form)
        assert (status, err) == (0, "")
        assert "theta" in out or "θ" in out


def test_simulate_reports_z_scores(capsys):
    argv = ["simulate", "-d", "20", "-n", "40", "-m", "30", "--eta", "20", "--reps", "40", "--seed", "3"]
    document = run_json(capsys, *argv)
    for name in ("A", "A_plus_B"):
        entry = document[name]
        assert entry["se"] > 0
        # |z| < 5 fails by chance about once in 10^5 with 40 networks (Student's t)
        assert abs(entry["z"]) < 5
    assert document == {**run_json(capsys, *argv), "seconds": document["seconds"]}


def test_verify_exit_status_follows_the_checks(capsys, monkeypatch):
    assert run(capsys, "verify", "--only", "k0-relu")[0] == 0
    from spikesym.results import registry

    broken = registry.statements()["k0-relu"]
    formulas = {name: -expr for name, expr in broken.formulas().items()}
    import dataclasses

    monkeypatch.setitem(registry._REGISTRY, "k0-relu", dataclasses.replace(broken, formulas=lambda: formulas))
    status, out, _ = run(capsys, "verify", "--only", "k0-relu")
    assert status == 1
    assert "FAIL" in out


def test_an_internal_fault_is_reported_as_such(capsys, monkeypatch):
    import spikesym.api.derive

    def broken(*args, **kwargs):
        raise RuntimeError("something\nunforeseen")

    monkeypatch.setattr(spikesym.api.derive, "derive", broken)
    status, _, err = run(capsys, "derive")
    assert status == 1
    assert err.count("\n") == 1
    assert "internal error" in err


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_version_and_help_answer_without_loading_sympy(argument):
    code = (
        "import sys; from spikesym.cli import main; status = main([sys.argv[1]]); "
        "assert 'sympy' not in sys.modules and 'numpy' not in sys.modules; sys.exit(status)"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", code, argument], capture_output=True, text=True, timeout=60)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    # CPU time of the child, not wall time: a promise of the interface (0.5 s), independent of load
    assert after.ru_utime - before.ru_utime < 0.5


def test_every_command_has_help(capsys):
    parser = build_parser()
    (commands,) = (a for a in parser._actions if a.dest == "command")
    assert set(commands.choices) == {"derive", "kernel", "spectrum", "simulate", "verify", "report"}
    for name in commands.choices:
        status, out, _ = run(capsys, name, "--help")
        assert status == 0
        assert "--json" in out


def test_a_closed_pipe_is_not_an_error():
    command = f"{sys.executable} -m spikesym verify --list | head -1"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=100, env={**os.environ}
    )
    assert done.stderr == ""
    assert done.stdout.count("\n") == 1
