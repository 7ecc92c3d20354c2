"""How tasks come to be: submitted here, in a transaction of the caller, or asked for by message."""
