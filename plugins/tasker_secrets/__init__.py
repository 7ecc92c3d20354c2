"""Providers of secrets: `sops`, `vault` and `aws`. Each is loaded when a reference names it."""
