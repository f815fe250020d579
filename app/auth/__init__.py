"""Who may do what: API tokens and their roles."""
