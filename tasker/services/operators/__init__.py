"""What a person does to tasks and their steps when something went wrong."""
