"""The base of the models that handlers see."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from tasker.contracts.readable import Constructor, yes_or_no


class Model(BaseModel):
    """A pydantic model whose validator is made when it is first used: a process uses few of them, and starts sooner."""

    model_config = ConfigDict(defer_build=True, ignored_types=(Constructor, yes_or_no))
