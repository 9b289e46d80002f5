"""The report and a page for each name for browsers (`quotaflow serve`); tools for assistants."""
