"""A run as an MLflow model: a thin `pyfunc` whose `predict` asks the run.

    python examples/mlflow_model.py runs/people models/people
    mlflow models serve -m models/people

The run is copied as it is, so a model that was logged does not forget: log it anew after erasures,
and delete old versions. To serve predictions that follow erasures at once, let clients ask
`grapheraser serve` instead.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import mlflow.models
import mlflow.pyfunc

import grapheraser as ge


class RunModel(mlflow.pyfunc.PythonModel):  # type: ignore[misc, unused-ignore]
    """Predicts the classes of nodes: a row for each, a column for each class."""

    eraser: ge.GraphEraser

    def load_context(self, context: Any) -> None:
        """Load the run that was logged with the model."""
        self.eraser = ge.GraphEraser.load(context.artifacts["run"])

    def predict(self, context: Any, model_input: Any, params: dict[str, Any] | None = None) -> Any:
        """Posteriors of the nodes in the column ``node`` of a table, or in a plain list."""
        del context, params
        nodes = model_input["node"] if hasattr(model_input, "columns") else model_input
        return self.eraser.predict_proba(list(nodes))


def save(run: Path, target: Path) -> None:
    """Save a run as an MLflow model."""
    mlflow.pyfunc.save_model(
        path=str(target),
        python_model=__file__,  # the code itself: nothing is pickled
        artifacts={"run": str(run)},
        pip_requirements=["grapheraser"],
    )


mlflow.models.set_model(RunModel())

if __name__ == "__main__":
    save(Path(sys.argv[1]), Path(sys.argv[2]))
