"""One attempt of a claimed step: the handler is resolved, called once, and its end becomes an outcome."""
