"""Results about groups: members, commits, and what becomes of members."""
