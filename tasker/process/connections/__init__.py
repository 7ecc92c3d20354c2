"""What a process stands on: its database, its broker, its engine over them, and whether there is room for it."""
