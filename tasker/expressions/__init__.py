"""Language of templates: a profile of CEL, its check and evaluation; paths such as `input.customer.id`. Pure."""
