"""Tasks that need a person: what is known of them, who looks, and replaying those that failed alike."""
