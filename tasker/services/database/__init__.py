"""Database maintenance: retention and sizes."""
