"""The report and a page for each name, served to browsers (`quotaflow serve`)."""
