"""How a program waits for tasks: who waits for which, and how it hears of ends in other processes."""
