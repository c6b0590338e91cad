from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """An immutable value. Unknown fields are an error, so that a typo never passes in silence."""

    model_config = ConfigDict(frozen=True, extra="forbid")
