"""Tables of the configuration as strict models, one module for each part."""
