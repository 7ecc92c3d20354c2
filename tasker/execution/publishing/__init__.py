"""The domain events of finished steps: made before the result is stored, told here once it is accepted."""
