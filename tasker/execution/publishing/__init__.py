"""Domain events of finished steps: built before the result is stored, published here once it is accepted."""
