"""`quotaflow report`: the tables as one HTML file that needs no network."""
