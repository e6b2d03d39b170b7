import numpy as np
import pytest
from onnx import TensorProto

from boardlift_transform.build_test_models import GraphBuilder
from boardlift_transform.edit_graph import Array
from boardlift_transform.refusal import Refusal
from boardlift_transform.run_one_pass import PassRun, run_one_pass
from boardlift_transform.transform_model import transform

ML = "ai.onnx.ml"


def _run(b: GraphBuilder, samples: list[dict[str, Array]] | None = None) -> PassRun:
    b.domains = (ML,)
    return run_one_pass(b.model(), "replace-foreign", samples=samples)


@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.INT64])
def test_scaler(kind: int) -> None:
    b = GraphBuilder(13)
    offsets, scales = [0.5, -1.0, 2.0], [2.0, 0.5, 0.1]
    b.node("Scaler", [b.input("x", [1, 3], kind)], "y", domain=ML, offset=offsets, scale=scales)
    b.output("y", [1, 3])
    run = _run(b)
    assert run.operators[-2:] == ["Sub", "Mul"]
    assert run.max_rel < 1e-6


@pytest.mark.parametrize("norm", ["L1", "L2"])
def test_normaliser_with_a_row_of_zeros(norm: str) -> None:
    b = GraphBuilder(13)
    b.node("Normalizer", [b.input("x", [1, 6])], "y", domain=ML, norm=norm)
    b.output("y", [1, 6])
    rows = [np.zeros((1, 6), np.float32), np.random.default_rng(0).standard_normal((1, 6)).astype(np.float32)]
    assert _run(b, [{"x": r} for r in rows]).max_rel < 1e-6


def test_imputer_fills_what_is_missing() -> None:
    b = GraphBuilder(13)
    fill = {"imputed_value_floats": [1.0, 2.0, 3.0], "replaced_value_float": float("nan")}
    b.node("Imputer", [b.input("x", [1, 3])], "y", domain=ML, **fill)
    b.output("y", [1, 3])
    run = _run(b, [{"x": np.asarray([[np.nan, 5.0, np.nan]], np.float32)}])
    assert run.max_rel == 0


def test_linear_regressor() -> None:
    b = GraphBuilder(13)
    weights = b.rng.standard_normal(12).tolist()
    b.node(
        "LinearRegressor",
        [b.input("x", [1, 4])],
        "y",
        domain=ML,
        coefficients=weights,
        intercepts=[1.0, 2.0, 3.0],
        targets=3,
    )
    b.output("y", [1, 3])
    run = _run(b)
    assert run.operators == ["MatMul", "Add"]
    assert run.max_rel < 1e-5


@pytest.mark.parametrize("post", ["NONE", "SOFTMAX", "LOGISTIC"])
@pytest.mark.parametrize("labels", [[0, 1, 2], [7, 3, 5]])
def test_linear_classifier_gives_label_and_scores(post: str, labels: list[int]) -> None:
    b = GraphBuilder(13)
    weights = b.rng.standard_normal(12).tolist()
    attributes = {
        "coefficients": weights,
        "intercepts": [0.1, 0.2, 0.3],
        "classlabels_ints": labels,
        "post_transform": post,
    }
    b.node("LinearClassifier", [b.input("x", [1, 4])], "c", outputs=2, domain=ML, multi_class=1, **attributes)
    b.output("c_0", [1], TensorProto.INT64)
    b.output("c_1", [1, 3])
    run = _run(b)
    assert {c.output: c.max_rel < 1e-5 for c in run.comparisons} == {"c_0": True, "c_1": True}


def test_feature_extractor_on_rows_and_on_a_vector() -> None:
    b = GraphBuilder(13)
    x = b.input("x", [2, 6])
    index = b.constant(np.asarray([4, 0], np.int64))
    b.node("ArrayFeatureExtractor", [x, index], "y", domain=ML)
    best = b.node("ArgMax", [x], axis=1, keepdims=0)
    b.node("ArrayFeatureExtractor", [b.constant(np.asarray([3, 1, 4, 1, 5, 9], np.int64)), best], "label", domain=ML)
    b.output("y", [2, 2])
    b.output("label", [1, 2], TensorProto.INT64)
    run = _run(b)
    assert "ArrayFeatureExtractor" not in run.operators
    assert run.max_rel == 0


def test_vectorizer_and_binarizer() -> None:
    b = GraphBuilder(13)
    parts = [b.input("x", [1, 3]), b.input("z", [1, 2])]
    t = b.node("FeatureVectorizer", parts, domain=ML, inputdimensions=[3, 2])
    b.node("Binarizer", [t], "y", domain=ML, threshold=0.2)
    b.output("y", [1, 5])
    run = _run(b)
    assert run.operators == ["Concat", "Greater", "Cast"]
    assert run.max_rel == 0


def test_text_labels_are_refused_but_scores_are_taken() -> None:
    b = GraphBuilder(13)
    weights = b.rng.standard_normal(8).tolist()
    attributes = {
        "coefficients": weights,
        "intercepts": [0.1, 0.2],
        "classlabels_strings": ["left", "right"],
        "post_transform": "SOFTMAX",
    }
    b.node("LinearClassifier", [b.input("x", [1, 4])], "c", outputs=2, domain=ML, **attributes)
    b.output("c_0", [1], TensorProto.STRING)
    b.output("c_1", [1, 2])
    b.domains = (ML,)
    model = b.model()
    with pytest.raises(Refusal) as caught:
        transform(model)
    assert (caught.value.reason, caught.value.metadata["value"]) == ("VALUE_TYPE", "c_0")
    assert transform(model, outputs=["c_1"]).proof.passed


def test_probabilities_that_are_normalised_again_stay_as_they_are() -> None:
    b = GraphBuilder(13)
    t = b.node("Softmax", [b.input("x", [1, 6])], axis=1)
    b.node("Normalizer", [t], "y", domain=ML, norm="L1")
    b.output("y", [1, 6])
    run = _run(b)
    assert "Div" not in run.operators
    assert run.max_rel < 1e-6
