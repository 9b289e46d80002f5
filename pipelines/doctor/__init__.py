"""What doctor looks at: this machine, the tables, the cluster; each finding with its remedy."""
