"""The questions of `quotaflow report` as a Databricks AI/BI dashboard over the views."""
