"""Places in a task's data: `input.customer.id`, `steps.quote.amount`. Pure."""
