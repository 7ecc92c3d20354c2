"""How a process goes on while something in it or below it fails, and how it ends."""
