"""HTTP interface: parses requests, calls services and renders their answers. It contains no rules of the engine."""
