"""What templates show, made from values of services; nothing here asks anybody."""
