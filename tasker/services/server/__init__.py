"""What servers ask for beside what programs do: many tasks with an answer for each, how the process does."""
