"""Domain events as handlers declare, publish and receive them."""
