"""Base class of the models that handlers use."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from tasker.contracts.readable import Constructor, yes_or_no


class Model(BaseModel):
    """Pydantic model that builds its validator at first use: a process uses few of them and starts faster."""

    model_config = ConfigDict(defer_build=True, ignored_types=(Constructor, yes_or_no))
