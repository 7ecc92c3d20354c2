"""Protection from what fails or overflows: circuit breakers, outages, pressure."""
