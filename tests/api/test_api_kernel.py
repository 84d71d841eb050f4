"""``spikesym kernel``: the document, the values at the points of a file, and refusals."""

import json

import numpy as np
import pytest
import sympy

from spikesym.api.kernel import kernel
from spikesym.cli import main
from spikesym.errors import InputError
from spikesym.model import Model
from spikesym.numeric.kernel import Kernel


@pytest.fixture
def points(tmp_path):
    rng = np.random.default_rng(np.random.SeedSequence(21))
    X, Y = rng.normal(size=(4, 6)), rng.normal(size=(3, 6))
    w = np.eye(6)[2]
    path = tmp_path / "points.npz"
    np.savez(path, X=X, Y=Y, w=w)
    return path, X, Y, w


def test_the_document():
    document = kernel(Model(), order=2).to_json()
    json.dumps(document, allow_nan=False)
    assert document["closed_form"] is True
    assert [o["order"] for o in document["orders"]] == [0, 1, 2]
    assert document["at"] is None
    assert {f["name"] for f in document["formulas"]} == {"k0", "k1", "definitions", "k1[1]", "k1[2]"}
    for formula in (document["k0"], document["k1"], *document["orders"]):
        assert sympy.sympify(formula["sympy"]).free_symbols
        assert formula["latex"].count("{") == formula["latex"].count("}")
        assert formula["caption"]


def test_values_at_points(points):
    path, X, Y, w = points
    result = kernel(Model(), order=2, A="1.2", B=5, at=path)
    values = result.to_json()["at"]
    assert np.allclose(values["k0"], Kernel("relu").matrix(X, Y), rtol=1e-14)
    assert np.allclose(values["k1"], Kernel("relu", A=1.2, B=5.0, w=w).matrix(X, Y), rtol=1e-14)
    total = np.sum(values["orders"], axis=0) + np.array(values["remainder"])
    assert np.allclose(total, values["k1"], rtol=1e-13)
    assert "k1[2]" in result.text()
    assert "A = 1.2, B = 5" in result.text()


def test_the_printed_first_order_is_the_evaluated_one(points):
    path, X, Y, w = points
    result = kernel(Model(), order=1, A="1.2", B=5, at=path)
    expr = sympy.sympify(result.to_json()["orders"][1]["sympy"])
    angle = np.arccos(X[0] @ Y[0] / np.linalg.norm(X[0]) / np.linalg.norm(Y[0]))
    at = {"nx": np.linalg.norm(X[0]), "nxp": np.linalg.norm(Y[0]), "s": X[0] @ w, "sp": Y[0] @ w}
    value = expr.subs({**at, "theta": angle, "d": 6, "A": 1.2, "B": 5})
    assert float(value) == pytest.approx(result.values.orders[1][0, 0], rel=1e-12)


def test_a_and_b_come_from_the_model(points):
    from spikesym.numeric.covariance import covariance

    path, X, *_ = points
    model = Model(d=6, n=20, m=30, eta=10)
    result = kernel(model, at=path)
    exact = covariance(model)
    assert float(exact.A["exact"].value) == result.values.A
    assert float(exact.B["exact"].value) == result.values.B
    assert any("exact" in w for w in result.warnings)
    assert result.values.k1.shape == (len(X), 3)


def test_without_w_the_spike_is_the_first_axis(tmp_path):
    X = np.arange(6.0).reshape(2, 3)
    np.savez(tmp_path / "p.npz", X=X, Y=X)
    result = kernel(Model(), A=1, B=2, at=tmp_path / "p.npz")
    assert result.values.w.tolist() == [1, 0, 0]


@pytest.mark.parametrize("activation", ["erf(z)", "tanh(z)", "max(-1, min(1, z))", "erf(a*z)", "he3"])
def test_other_activations(activation):
    result = kernel(Model(activation=activation), order=1)
    assert result.formulas.closed == (activation != "tanh(z)")
    assert result.text()
    assert r"\begin{equation*}" in result.latex()
    json.dumps(result.to_json())


def test_a_callable_activation(points):
    path, X, Y, w = points
    result = kernel(Model(activation=np.tanh), order=0, A=1, B=2, at=path)
    assert np.allclose(result.values.k1, Kernel("tanh(z)", A=1.0, B=2.0, w=w).matrix(X, Y), rtol=1e-12)


def bad_files(folder):
    X = np.ones((2, 3))
    files = {
        "missing": (None, "no such file"),
        "text": (b"hello", "cannot be read"),
        "empty": (b"", "cannot be read"),
        "broken": (b"PK\x03\x04 broken", "cannot be read"),
    }
    arrays = {
        "no_y": ({"X": X}, "no array Y"),
        "no_x": ({"Y": X}, "no array X"),
        "flat": ({"X": np.ones(3), "Y": X}, "array X has shape"),
        "dimension": ({"X": X, "Y": np.ones((2, 4))}, "X has dimension 3, Y has 4"),
        "nan": ({"X": X * np.nan, "Y": X}, "not finite"),
        "complex": ({"X": X * 1j, "Y": X}, "type complex"),
        "letters": ({"X": np.array([["a"]]), "Y": X}, "type <U1"),
        "object": ({"X": np.array([[print]], dtype=object), "Y": X}, "cannot be read"),
        "w_shape": ({"X": X, "Y": X, "w": np.ones(2)}, "array w"),
        "w_norm": ({"X": X, "Y": X, "w": np.ones(3)}, "norm 1.73"),
        "huge": ({"X": np.ones((3000, 1)), "Y": np.ones((3000, 1))}, "3000 x 3000"),
    }
    for name, (content, what) in files.items():
        path = folder / f"{name}.npz"
        if content is not None:
            path.write_bytes(content)
        yield path, what
    for name, (content, what) in arrays.items():
        path = folder / f"{name}.npz"
        np.savez(path, **content)
        yield path, what
    np.save(folder / "single.npy", X)
    yield folder / "single.npy", "not an .npz archive"


def test_bad_files_are_refused(tmp_path):
    for path, what in bad_files(tmp_path):
        with pytest.raises(InputError, match=what):
            kernel(Model(), A=1, B=1, at=path)


def test_bad_arguments_are_refused(points):
    path, *_ = points
    with pytest.raises(InputError, match="--B"):
        kernel(Model(), A=1)
    with pytest.raises(InputError, match="--A and --B"):
        kernel(Model(), at=path)
    with pytest.raises(InputError, match="at most 12"):
        kernel(Model(), order=13)
    with pytest.raises(InputError, match="model has 7"):
        kernel(Model(d=7), A=1, B=1, at=path)
    with pytest.raises(InputError, match="must be positive"):
        kernel(Model(), A=-1, B=1, at=path)
    with pytest.raises(InputError, match="free parameters"):
        kernel(Model(activation="erf(a*z)"), A=1, B=1, at=path)


def test_the_command(points, capsys, tmp_path):
    path, *_ = points
    assert main(["kernel", "--order", "1", "--A", "1.2", "--B", "5", "--at", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert len(document["at"]["orders"]) == 2
    assert main(["kernel", "--at", str(tmp_path / "nothing.npz"), "--A", "1", "--B", "1"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "no such file" in error
