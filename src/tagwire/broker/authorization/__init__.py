"""Who may do what: ACLs, where they are kept, how a request is decided by them, and what each API asks for."""
