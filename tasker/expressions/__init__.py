"""Paths to values of a task's data, such as `input.customer.id` and `steps.quote.amount`. Pure."""
