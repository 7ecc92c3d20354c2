"""What people write in configurations and requests: permissions, retry profiles, the bounds of numbers."""
