"""Evidence: what a tenant's plans and feedback taught, and the risk of each plan group."""
