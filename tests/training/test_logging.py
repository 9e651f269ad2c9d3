"""A training run in MLflow: one run an artefact, the same when logged again."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
mlflow = pytest.importorskip("mlflow")

from methods.training import tiny  # noqa: E402
from methods.training.logging import EXPERIMENT, log_training  # noqa: E402
from methods.training.settings import preset  # noqa: E402
from methods.training.sft import train_comparator  # noqa: E402
from tests.training.helpers import pair_rows  # noqa: E402

pytestmark = pytest.mark.models


def test_logged_once_with_curves_card_and_identity(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(tiny, "DEFAULT", tiny.Size(width=32, layers=1, heads=2, inner=32, vocabulary=200))
    settings = preset("tiny").changed(most_steps=6, evaluations=2)
    rows = pair_rows(6, "train", 1) + pair_rows(3, "validation", 2)
    made = train_comparator(rows, tmp_path / "judge", settings=settings)
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    run_id = log_training(made.folder, uri)
    assert log_training(made.folder, uri) == run_id
    client = mlflow.MlflowClient(uri)
    (run,) = client.search_runs([client.get_experiment_by_name(EXPERIMENT).experiment_id])
    assert run.data.tags["cota.judge"] == made.hash
    assert run.data.params["settings.learning_rate"] == "0.003"
    assert run.data.metrics["steps"] == 6
    assert len(client.get_metric_history(run_id, "curve/eval_loss")) == 2
    names = {file.path for file in client.list_artifacts(run_id)}
    assert {"identity.json", "card.json", "curves.csv", "prompt.json"} <= names
    assert "model.safetensors" not in names
    assert mlflow.active_run() is None
