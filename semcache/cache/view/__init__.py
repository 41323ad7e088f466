"""Views: what is known of each tenant in memory, derived from the store."""
