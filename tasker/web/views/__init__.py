"""Values for the templates, computed from results of the services without any I/O."""
