"""`tasker template` and `tasker new`: what authors of workflows use."""
