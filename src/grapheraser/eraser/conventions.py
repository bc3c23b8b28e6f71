"""Conventions of scikit-learn's estimators: arguments to read and set; and a turn to take."""

from __future__ import annotations

import inspect
import threading
from typing import Any, Self

from grapheraser.errors import ParameterError


class Estimator:
    """scikit-learn's conventions for the arguments of a constructor that only stores them."""

    @classmethod
    def _parameter_names(cls) -> tuple[str, ...]:
        return tuple(inspect.signature(cls.__init__).parameters)[1:]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments as they are now."""
        del deep
        return {name: getattr(self, name) for name in self._parameter_names()}

    def set_params(self, **params: Any) -> Self:
        """Change constructor arguments; they count from the next `fit` on."""
        for name, value in params.items():
            if name not in self._parameter_names():
                raise ParameterError(
                    f"{type(self).__name__} has no parameter '{name}'. "
                    f"Choose from: {', '.join(self._parameter_names())}."
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params(deep=False).items()
            if value is not defaults[name].default and value != defaults[name].default
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            input_tags=InputTags(two_d_array=False),
        )


class Turn:
    """A lock that is copied and pickled as a new one: ``with turn:`` waits for its turn."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type[Turn], tuple[()]]:
        return Turn, ()
