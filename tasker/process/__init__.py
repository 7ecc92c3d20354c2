"""Infrastructure of every long-running process: registration, supervision of services, and a bounded stop."""
