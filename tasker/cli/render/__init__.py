"""What people see: tasks, steps, values and tables as text."""
