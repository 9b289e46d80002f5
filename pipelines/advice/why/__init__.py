"""What is wrong with a principal, client, group, topic or address, and why (`quotaflow why`)."""
